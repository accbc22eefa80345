//! Identity of the agent in a run.

use sha2::{Digest, Sha256};

use crate::agents::custom::{AgentName, CustomAgent};

/// Digest of a persona and its skills.
pub(super) type Fingerprint = [u8; 32];

/// The lead agent itself, or a custom agent based on it.
#[derive(Debug, Clone, Default)]
pub(super) struct Persona {
    /// Name of the custom agent; `None` for the lead agent itself.
    pub(super) name: Option<AgentName>,
    /// Definition of the custom agent.
    pub(super) agent: CustomAgent,
    /// Profile of the user.
    pub(super) profile: String,
}

impl Persona {
    /// Digest of the persona and its skills section: equal for equal content, independent of the
    /// user.
    pub(super) fn fingerprint(&self, skills: &str) -> Fingerprint {
        let name = self.name.as_ref().map_or("", AgentName::as_str);
        let keys = serde_json::to_vec(&self.agent).unwrap_or_default();
        let mut digest = Sha256::new_with_prefix(name);
        for part in [
            &[0][..],
            &keys,
            &[0],
            self.agent.soul.as_bytes(),
            &[0],
            self.profile.as_bytes(),
            &[0],
            skills.as_bytes(),
        ] {
            digest.update(part);
        }
        digest.finalize().into()
    }
}

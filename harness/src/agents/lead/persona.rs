//! Who a run is with.

use sha2::{Digest, Sha256};

use crate::agents::custom::{AgentName, CustomAgent};

/// The lead agent as itself, or as an agent that a user has made of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Persona {
    /// The custom agent's name; none for the lead agent itself.
    pub(super) name: Option<AgentName>,
    /// What makes it what it is.
    pub(super) agent: CustomAgent,
    /// What its user says of themselves.
    pub(super) profile: String,
}

impl Persona {
    /// Tells personas with what they are told of their skills apart: the same for the same content, whoever made it.
    pub(super) fn fingerprint(&self, skills: &str) -> String {
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
        hex::encode(digest.finalize())
    }
}

//! `acp_agents`: external agent programs to which an agent can delegate tasks.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde::Deserialize;

use super::check::Checker;

/// Maximum timeout: 30 days, in seconds.
const MAX_TIMEOUT_SECONDS: u64 = 30 * 24 * 3600;

/// External agent that supports the Agent Client Protocol.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct AcpAgentConfig {
    /// Program to start.
    pub command: String,
    /// Arguments of the program.
    #[serde(default)]
    pub args: Vec<String>,
    /// Environment variables, in addition to the few that every such program gets. Values may be
    /// secret.
    #[serde(default)]
    pub env: BTreeMap<String, SecretString>,
    /// Purpose of the agent; shown to the model that selects an agent.
    pub description: String,
    /// Model that the agent uses, by the agent's own name for it.
    #[serde(default)]
    pub model: Option<String>,
    /// Approves all permission requests of the agent.
    #[serde(default)]
    pub auto_approve_permissions: bool,
    /// Timeout of a task, in seconds.
    #[serde(default = "default_timeout_seconds")]
    pub timeout_seconds: u64,
}

fn default_timeout_seconds() -> u64 {
    1800
}

impl AcpAgentConfig {
    pub(super) fn check(&self, name: &str, check: &mut Checker) {
        check.under(name, |check| {
            check.not_blank("command", &self.command);
            check.not_blank("description", &self.description);
            check.within(
                "timeout_seconds",
                self.timeout_seconds,
                1..=MAX_TIMEOUT_SECONDS,
            );
            check.under("env", |check| {
                for name in self
                    .env
                    .keys()
                    .filter(|name| name.is_empty() || name.contains(['=', '\0']))
                {
                    check.refuse(name, "an invalid variable name", "a name without `=`");
                }
            });
        });
        if name.trim().is_empty() {
            check.refuse(name, "a blank name", "a non-empty name");
        }
    }
}

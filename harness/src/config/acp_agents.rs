//! `acp_agents`: programs with an agent of their own that an agent may hand tasks to.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde::Deserialize;

use super::check::Checker;

/// Nobody waits longer than a month.
const LONGEST_SECONDS: u64 = 30 * 24 * 3600;

/// A program that speaks the Agent Client Protocol.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct AcpAgentConfig {
    /// The program.
    pub command: String,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Its variables, besides the few that every such program gets. Values may be secret.
    #[serde(default)]
    pub env: BTreeMap<String, SecretString>,
    /// What it is good for; the model that chooses reads this.
    pub description: String,
    /// The model that it shall use, by the name that it knows it by.
    #[serde(default)]
    pub model: Option<String>,
    /// Whether it gets the permissions that it asks for.
    #[serde(default)]
    pub auto_approve_permissions: bool,
    /// Seconds that a task may take.
    #[serde(default = "half_an_hour")]
    pub timeout_seconds: u64,
}

fn half_an_hour() -> u64 {
    1800
}

impl AcpAgentConfig {
    pub(super) fn check(&self, name: &str, check: &mut Checker) {
        check.under(name, |check| {
            check.not_blank("command", &self.command);
            check.not_blank("description", &self.description);
            check.within("timeout_seconds", self.timeout_seconds, 1..=LONGEST_SECONDS);
            check.under("env", |check| {
                for name in self
                    .env
                    .keys()
                    .filter(|name| name.is_empty() || name.contains(['=', '\0']))
                {
                    check.refuse(name, "no name of a variable", "a name without `=`");
                }
            });
        });
        if name.trim().is_empty() {
            check.refuse(name, "without a name", "a name that a model can say");
        }
    }
}

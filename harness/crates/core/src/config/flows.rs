//! `flows`: graphs of agents, their limits, and the settings of their adapters.

use std::path::PathBuf;

use secrecy::SecretString;
use serde::Deserialize;

use super::check::Checker;
use super::open_keys::optional_secret;
#[cfg(feature = "http")]
use crate::net::HostRules;

/// Graphs of agents.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct FlowsConfig {
    /// Folder of the system flows, relative to the folder of the configuration file.
    pub path: PathBuf,
    /// Maximum size of the state of one run, in bytes.
    pub max_state_bytes: usize,
    /// Maximum number of nodes of one run that are executed at once.
    pub max_concurrency: usize,
    /// Maximum nesting of flows within flows.
    pub max_subflow_depth: usize,
    /// Maximum number of flows of one user.
    pub max_flows_per_user: usize,
    /// Maximum number of versions of one flow; older ones are removed.
    pub max_versions: usize,
    /// Origins that may receive a key of `adapters`, besides that of its `base_url`.
    pub allowed_origins: Vec<String>,
    /// Hosts that loader nodes may call: names, `*.name` for subdomains, or addresses, each with an
    /// optional port or `*`. Empty disables HTTP loaders.
    pub loader_hosts: Vec<String>,
    /// Settings of adapters that flows do not state themselves.
    pub adapters: FlowAdaptersConfig,
}

/// Settings of adapters, by kind.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct FlowAdaptersConfig {
    /// Kind `pi-mono`.
    #[serde(rename = "pi-mono")]
    pub pi_mono: PiMonoConfig,
}

/// Settings of the adapter kind `pi-mono`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct PiMonoConfig {
    /// Address of the backend.
    pub base_url: Option<String>,
    /// API key, sent only to the origin of `base_url` and to `allowed_origins`.
    #[serde(deserialize_with = "optional_secret")]
    pub api_key: Option<SecretString>,
    /// Model.
    pub model: Option<String>,
    /// Temperature, 0 to 2.
    pub temperature: Option<f64>,
}

impl Default for FlowsConfig {
    fn default() -> Self {
        Self {
            path: PathBuf::from("flows"),
            max_state_bytes: 8 * 1024 * 1024,
            max_concurrency: 16,
            max_subflow_depth: 5,
            max_flows_per_user: 200,
            max_versions: 50,
            allowed_origins: Vec::new(),
            loader_hosts: Vec::new(),
            adapters: FlowAdaptersConfig::default(),
        }
    }
}

impl FlowsConfig {
    pub(super) fn check(&self, check: &mut Checker) {
        check.not_blank("path", &self.path.to_string_lossy());
        check.within("max_state_bytes", self.max_state_bytes, 65_536..=67_108_864);
        check.within("max_concurrency", self.max_concurrency, 1..=1000);
        check.within("max_subflow_depth", self.max_subflow_depth, 0..=100);
        check.within("max_flows_per_user", self.max_flows_per_user, 0..=100_000);
        check.within("max_versions", self.max_versions, 1..=10_000);
        check.under("allowed_origins", |check| {
            for (position, origin) in self.allowed_origins.iter().enumerate() {
                if !is_origin(origin) {
                    check.refuse(
                        &position.to_string(),
                        format!("{origin:?}"),
                        "an origin such as https://host:8443",
                    );
                }
            }
        });
        #[cfg(feature = "http")]
        check.under("loader_hosts", |check| {
            for (position, host) in self.loader_hosts.iter().enumerate() {
                // A name that resolves into a network is not known before it is called.
                if host.contains('/') || HostRules::only([host]).is_err() {
                    check.refuse(
                        &position.to_string(),
                        format!("{host:?}"),
                        "a host such as docs.example, *.docs.example:8443 or 10.1.2.3:*",
                    );
                }
            }
        });
        check.under("adapters", |check| {
            check.under("pi-mono", |check| self.adapters.pi_mono.check(check));
        });
    }
}

impl PiMonoConfig {
    fn check(&self, check: &mut Checker) {
        check.within_if_set("temperature", self.temperature, 0.0..=2.0);
    }
}

/// Reports whether a text is a scheme, a host and possibly a port.
fn is_origin(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, rest)| {
        matches!(scheme, "http" | "https")
            && !rest.is_empty()
            && !rest.contains(['/', '?', '#', '@'])
            && !rest.contains(char::is_whitespace)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn violations(section: serde_json::Value) -> Vec<String> {
        let config: FlowsConfig = serde_json::from_value(section).unwrap();
        let mut check = Checker::default();
        config.check(&mut check);
        let violations = check.into_violations();
        violations.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn defaults_are_within_bounds() {
        assert_eq!(violations(json!({})), Vec::<String>::new());
    }

    #[test]
    fn values_out_of_bounds_are_reported_with_their_keys() {
        let found = violations(json!({
            "max_concurrency": 0,
            "allowed_origins": ["https://a.example:8443", "a.example", "https://a.example/path"],
            "loader_hosts": ["docs.example:*", "10.0.0.0/8", "a b"],
            "adapters": {"pi-mono": {"temperature": 3}},
        }));
        assert_eq!(
            found,
            [
                "`max_concurrency` is 0, allowed: 1 to 1000",
                "`allowed_origins[1]` is \"a.example\", allowed: an origin such as https://host:8443",
                "`allowed_origins[2]` is \"https://a.example/path\", allowed: an origin such as https://host:8443",
                "`loader_hosts[1]` is \"10.0.0.0/8\", allowed: a host such as docs.example, *.docs.example:8443 or 10.1.2.3:*",
                "`loader_hosts[2]` is \"a b\", allowed: a host such as docs.example, *.docs.example:8443 or 10.1.2.3:*",
                "`adapters.pi-mono.temperature` is 3, allowed: 0 to 2",
            ]
        );
    }

    #[test]
    fn api_key_is_not_in_debug_output() {
        let config: FlowsConfig =
            serde_json::from_value(json!({"adapters": {"pi-mono": {"api_key": "sk-canary"}}}))
                .unwrap();
        assert!(!format!("{config:?}").contains("sk-canary"));
    }
}

//! Configured environment variables of sandboxed commands.

use harness::config::SandboxConfig;
use harness::config_file::Environment;
use secrecy::ExposeSecret;

/// Environment variables that commands on the host inherit. None contains a secret.
const HOST_VARIABLES: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "JAVA_HOME",
];

/// Reports whether a variable influences which code shells and loaders execute: it would also
/// affect the processes that create the sandbox.
fn alters_program_startup(name: &str) -> bool {
    name.starts_with("LD_")
        || [
            "BASH_ENV",
            "ENV",
            "SHELLOPTS",
            "BASHOPTS",
            "PS4",
            "GCONV_PATH",
            "GLIBC_TUNABLES",
        ]
        .contains(&name)
}

/// Returns the configured variables with valid names.
pub(crate) fn variables(sandbox: &SandboxConfig) -> Vec<(String, String)> {
    let is_name = |name: &str| {
        let mut bytes = name.bytes();
        bytes
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
            && bytes.all(|c| c.is_ascii_alphanumeric() || c == b'_')
    };
    let named = sandbox.environment.iter().filter(|(name, _)| {
        let good = is_name(name) && !alters_program_startup(name);
        if !good {
            tracing::error!(name, "variable of sandbox.environment is ignored: its name is invalid, or it changes what shells execute");
        }
        good
    });
    named
        .map(|(name, value)| (name.clone(), value.expose_secret().to_owned()))
        .collect()
}

/// Returns the inherited and configured variables of commands on the host.
pub(crate) fn host_variables(
    sandbox: &SandboxConfig,
    environment: &Environment,
) -> Vec<(String, String)> {
    let inherited = HOST_VARIABLES
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), environment.get(name)?.to_owned())));
    inherited.chain(variables(sandbox)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn sandbox(value: Value) -> SandboxConfig {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn variables_that_affect_shells_are_ignored() {
        let config = sandbox(
            json!({"environment": {"TOKEN": "x", "LD_PRELOAD": "x", "BASH_ENV": "x", "1A": "x"}}),
        );
        let names: Vec<String> = variables(&config)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["TOKEN"]);
    }
}

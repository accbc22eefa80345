//! Checks of the settings of sign-in.

use deerflow_gateway::guard::trusted_proxies::TrustedProxies;
use harness::config::{AppConfig, DatabaseBackend};
use harness::config_file::{Environment, parse_switch};

use super::report::Finding;

const SUBJECT: &str = "sign-in";
/// Minimum length of a secret, in characters.
const MIN_SECRET: usize = 32;

/// Returns what the settings of sign-in do that their author may not want.
pub(super) fn sign_in(config: Option<&AppConfig>, environment: &Environment) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(disabled(environment));
    findings.extend(proxies(environment));
    for (variable, length) in ["AUTH_JWT_SECRET", "DEER_FLOW_INTERNAL_AUTH_TOKEN"]
        .into_iter()
        .filter_map(|name| Some((name, environment.filled(name)?.chars().count())))
    {
        if length < MIN_SECRET {
            findings.push(Finding::warn(
                SUBJECT,
                format!("{variable} has {length} characters and can be guessed"),
                "use a random text of at least 32 characters, such as that of `openssl rand -hex 32`",
            ));
        }
    }
    let persistence = "DEER_FLOW_AUTH_ALLOW_INSECURE_PERSISTENT_COOKIE";
    if environment
        .filled(persistence)
        .is_some_and(|word| parse_switch(word).is_none())
    {
        findings.push(Finding::warn(
            SUBJECT,
            format!("{persistence} is neither on nor off and has no effect"),
            "set it to 1 or 0",
        ));
    }
    if let Some(config) = config {
        let several = config.database.backend == DatabaseBackend::Postgres;
        if several && environment.filled("AUTH_JWT_SECRET").is_none() {
            findings.push(Finding::warn(
                SUBJECT,
                "nodes without AUTH_JWT_SECRET sign with a file of their own and refuse each other's sign-ins",
                "give all nodes the same AUTH_JWT_SECRET, unless there is only one or they share their home",
            ));
        }
        findings.extend(providers(config));
    }
    findings
}

fn disabled(environment: &Environment) -> Option<Finding> {
    let word = environment.filled("DEER_FLOW_AUTH_DISABLED")?;
    let is_meant = word != "1" && parse_switch(word) != Some(false);
    is_meant.then(|| {
        Finding::warn(
            SUBJECT,
            format!("DEER_FLOW_AUTH_DISABLED is {word:?} and has no effect"),
            "authentication is disabled by the value 1 only",
        )
    })
}

fn proxies(environment: &Environment) -> Option<Finding> {
    let (_, wrong) = TrustedProxies::parse(environment.filled("AUTH_TRUSTED_PROXIES")?);
    (!wrong.is_empty()).then(|| {
        Finding::warn(
            SUBJECT,
            format!(
                "AUTH_TRUSTED_PROXIES has invalid entries: {}",
                wrong.join(", ")
            ),
            "each entry is an address or a network such as 10.0.0.0/8",
        )
    })
}

fn providers(config: &AppConfig) -> Option<Finding> {
    let oidc = &config.auth.oidc;
    oidc.enabled.then(|| {
        let names: Vec<&str> = oidc.providers.keys().map(String::as_str).collect();
        Finding::ok(
            SUBJECT,
            format!("people sign in through {}", names.join(", ")),
        )
    })
}

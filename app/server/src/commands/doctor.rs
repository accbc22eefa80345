//! `deerflow doctor`: looks at everything a start needs and says how to mend what is missing.

mod checks;
mod report;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use async_trait::async_trait;
use harness::config::{
    AppConfig, DatabaseConfig, ModelConfig, SandboxConfig, SandboxNetworkConfig,
    StreamBridgeConfig, StreamBridgeKind,
};
use harness::config_file::{Environment, Loaded, load};
use harness::sandbox::command::bubblewrap::ProbeReport;

use crate::cli::FileArgs;
use crate::config::{Deployment, Settings};
use crate::{listener, open_files};
pub use report::{Finding, Verdict};

/// Longest wait for a server.
const PROBE_LIMIT: Duration = Duration::from_secs(10);
/// How long whoever holds the port may take to say what it is.
const HEALTH_LIMIT: Duration = Duration::from_secs(2);

/// Looks at the configured database and changes nothing.
#[async_trait]
pub trait DatabaseProbe: Send + Sync {
    /// What answered (kind, version), or why nothing did.
    async fn probe(&self, database: &DatabaseConfig, settings: &Settings)
    -> Result<String, String>;
}

/// Asks the Redis server that carries streams, and changes nothing.
#[async_trait]
pub trait RedisProbe: Send + Sync {
    /// What answered, `Ok` if it keeps streams when its memory is full and `Err` if it may drop them; or why nothing answered.
    async fn probe(
        &self,
        bridge: &StreamBridgeConfig,
        settings: &Settings,
    ) -> Result<Result<String, String>, String>;
}

/// Judges whether a model entry's provider can be built; the error says what to configure.
pub trait ProviderProbe: Send + Sync {
    /// The provider's kind, or why there is none.
    fn probe(&self, model: &ModelConfig) -> Result<String, String>;
}

/// Tries out where commands would run, and leaves nothing behind.
#[async_trait]
pub trait CommandProbe: Send + Sync {
    /// Whether a configured tool runs commands.
    fn is_wanted(&self, config: &AppConfig) -> bool;
    /// Which layers of the sandbox hold.
    async fn probe(&self, sandbox: &SandboxConfig) -> ProbeReport;
    /// Where they run in containers, who makes these, or why nobody does.
    async fn containers(
        &self,
        sandbox: &SandboxConfig,
        environment: &Environment,
    ) -> Option<Result<String, String>>;
}

/// What the composition root knows that this crate's commands do not.
#[derive(Clone, Copy, Default)]
pub struct Probes<'a> {
    /// For the database; without it only its directory is looked at.
    pub database: Option<&'a dyn DatabaseProbe>,
    /// For model providers; without it only their variables are looked at.
    pub provider: Option<&'a dyn ProviderProbe>,
    /// For Redis, where streams go through it.
    pub redis: Option<&'a dyn RedisProbe>,
    /// For the sandbox, where a tool runs commands.
    pub commands: Option<&'a dyn CommandProbe>,
    /// How long whoever holds the port may take to say what it is; without it two seconds.
    pub health_limit: Option<Duration>,
}

/// Prints every finding to `out`; fails when a start would.
pub async fn run(
    args: &FileArgs,
    environment: &Environment,
    probes: Probes<'_>,
    out: &mut (dyn Write + Send),
) -> anyhow::Result<ExitCode> {
    let findings = examine(args, environment, probes).await;
    for finding in &findings {
        writeln!(out, "{finding}")?;
    }
    let count = |verdict| {
        findings
            .iter()
            .filter(|finding| finding.verdict == verdict)
            .count()
    };
    let (failed, warned) = (count(Verdict::Fail), count(Verdict::Warn));
    writeln!(
        out,
        "{failed} failed, {warned} to look at, {} fine",
        count(Verdict::Ok)
    )?;
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Every finding, in the order in which a start needs things.
pub async fn examine(
    args: &FileArgs,
    environment: &Environment,
    probes: Probes<'_>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let loaded = load(args.config.as_deref(), environment);
    findings.extend(checks::configuration(&loaded));
    let config = loaded.ok().map(|Loaded { config, .. }| config);
    if let Some(config) = &config {
        findings.extend(checks::models(config, probes.provider));
        findings.extend(checks::classes(config));
        findings.extend(commands(config, environment, probes.commands).await);
        findings.extend(checks::acp_agents(config, environment));
    }
    match Settings::from_environment(environment) {
        Err(error) => findings.push(Finding::fail(
            "environment",
            error.to_string(),
            "set the variable to an allowed value, or unset it",
        )),
        Ok(settings) => {
            findings.push(checks::exposure(&settings));
            findings
                .push(checks::port(&settings, probes.health_limit.unwrap_or(HEALTH_LIMIT)).await);
            findings.push(checks::writable("home directory", &settings.home));
            if let Some(config) = &config {
                findings.extend(database(config, &settings, probes.database).await);
                findings.extend(redis(config, &settings, probes.redis).await);
            }
        }
    }
    findings.push(checks::connection_queue(listener::backlog_cap()));
    findings.push(checks::open_files(open_files::hard_limit()));
    findings
}

async fn database(
    config: &AppConfig,
    settings: &Settings,
    probe: Option<&dyn DatabaseProbe>,
) -> Vec<Finding> {
    let mut findings = checks::database_directory(&config.database, settings);
    let usable = findings
        .iter()
        .all(|finding| finding.verdict != Verdict::Fail);
    if let (true, Some(probe)) = (usable, probe) {
        let probed = tokio::time::timeout(PROBE_LIMIT, probe.probe(&config.database, settings));
        let mend = "check the `database` section and that the server behind it runs";
        findings.push(match probed.await {
            Ok(Ok(answer)) => Finding::ok("database", answer),
            Ok(Err(cause)) => Finding::fail("database", cause, mend),
            Err(_) => {
                let found = format!("no answer within {} s", PROBE_LIMIT.as_secs());
                Finding::fail("database", found, mend)
            }
        });
    }
    findings
}

async fn commands(
    config: &AppConfig,
    environment: &Environment,
    probe: Option<&dyn CommandProbe>,
) -> Option<Finding> {
    let subject = "commands";
    let probe = probe.filter(|probe| probe.is_wanted(config))?;
    if let Some(asked) = probe.containers(&config.sandbox, environment).await {
        let mend =
            "start the engine or the provisioner and see docs/sandbox.md; until then commands fail";
        return Some(asked.map_or_else(
            |cause| Finding::warn(subject, format!("there are no containers: {cause}"), mend),
            |found| Finding::ok(subject, format!("in containers of {found}")),
        ));
    }
    if config.sandbox.allow_host_bash {
        let found =
            "`sandbox.allow_host_bash` runs them on this host, as this user and without a sandbox";
        return Some(Finding::warn(
            subject,
            found,
            "set it to false to have them sandboxed",
        ));
    }
    let report = probe.probe(&config.sandbox).await;
    let (active, missing) = (report.active(), report.missing_text());
    Some(match (report.suffices(), missing.is_empty()) {
        (true, _) if config.sandbox.network == SandboxNetworkConfig::Host => {
            let found = "sandboxed, but with `sandbox.network: host` they reach whatever this machine reaches, its own ports among it";
            Finding::warn(
                subject,
                found,
                "name the hosts they need under `sandbox.network.allow`",
            )
        }
        (true, true) => Finding::ok(subject, format!("sandboxed: {active}")),
        (true, false) => Finding::ok(subject, format!("sandboxed: {active}; without {missing}")),
        (false, _) => {
            let mend = "install bubblewrap 0.8 and allow user namespaces, see docs/sandbox.md; until then the bash tool is left out";
            Finding::warn(
                subject,
                format!("refused, the sandbox does not hold here: {missing}"),
                mend,
            )
        }
    })
}

async fn redis(
    config: &AppConfig,
    settings: &Settings,
    probe: Option<&dyn RedisProbe>,
) -> Option<Finding> {
    let (StreamBridgeKind::Redis, Some(probe)) = (config.stream_bridge.kind, probe) else {
        return None;
    };
    let probed =
        tokio::time::timeout(PROBE_LIMIT, probe.probe(&config.stream_bridge, settings)).await;
    let subject = "stream bridge";
    let mend =
        "set maxmemory-policy to noeviction on the server: it may drop the streams of live runs";
    let unreachable = |cause| {
        Finding::warn(
            subject,
            cause,
            "check `stream_bridge.redis_url` and that the server behind it runs",
        )
    };
    Some(match probed {
        Ok(Ok(Ok(found))) => Finding::ok(subject, found),
        Ok(Ok(Err(found))) if settings.deployment == Deployment::Production => {
            Finding::fail(subject, found, mend)
        }
        Ok(Ok(Err(found))) => Finding::warn(subject, found, mend),
        Ok(Err(cause)) => unreachable(cause),
        Err(_) => unreachable(format!("no answer within {} s", PROBE_LIMIT.as_secs())),
    })
}

#[cfg(test)]
#[path = "doctor_tests.rs"]
mod tests;

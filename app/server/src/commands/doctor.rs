//! `deerflow doctor`: checks the prerequisites of a start and reports how to fix problems.

mod channels;
mod checks;
mod flows;
pub mod live_probes;
mod probes;
mod report;
mod sign_in;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use harness::config::{AppConfig, SandboxNetworkConfig, StreamBridgeKind};
use harness::config_file::{Environment, Loaded, load};

use crate::cli::FileArgs;
use crate::config::{Deployment, Settings};
use crate::{listener, open_files};
use probes::PROBE_TIMEOUT;
pub use probes::{ChannelProbe, CommandProbe, DatabaseProbe, Probes, ProviderProbe, RedisProbe};
pub use report::{Finding, Verdict};

/// Timeout of the health request to the process that uses the port.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(2);

/// Writes all findings to `out`. The exit code is a failure if a start would fail, or an enabled
/// channel could not work.
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
        "{failed} failed, {warned} warnings, {} ok",
        count(Verdict::Ok)
    )?;
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Returns all findings, in the order in which a start needs them.
pub async fn examine(
    args: &FileArgs,
    environment: &Environment,
    probes: Probes<'_>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let loaded = load(args.config.as_deref(), environment);
    findings.extend(checks::configuration(&loaded));
    findings.extend(loaded.iter().flat_map(flows::flows));
    let config = loaded.ok().map(|Loaded { config, .. }| config);
    if let Some(config) = &config {
        findings.extend(checks::models(config, probes.provider));
        findings.extend(checks::classes(config));
        findings.extend(commands(config, environment, probes.commands).await);
        findings.extend(checks::acp_agents(config, environment));
    }
    findings.extend(sign_in::sign_in(config.as_ref(), environment));
    match Settings::from_environment(environment) {
        Err(error) => findings.push(Finding::fail(
            "environment",
            error.to_string(),
            "set the variable to an allowed value, or unset it",
        )),
        Ok(settings) => {
            findings.push(checks::exposure(&settings));
            findings.push(
                checks::port(&settings, probes.health_timeout.unwrap_or(HEALTH_TIMEOUT)).await,
            );
            findings.push(checks::writable("home directory", &settings.home));
            if let Some(config) = &config {
                findings.extend(database(config, &settings, probes.database).await);
                findings.extend(redis(config, &settings, probes.redis).await);
                let asked = channels::channels(config, &settings, environment, probes.channels);
                findings.extend(asked.await);
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
        let probed = tokio::time::timeout(PROBE_TIMEOUT, probe.probe(&config.database, settings));
        let fix = "check the `database` section and that the server behind it runs";
        findings.push(match probed.await {
            Ok(Ok(answer)) => Finding::ok("database", answer),
            Ok(Err(cause)) => Finding::fail("database", cause, fix),
            Err(_) => {
                let found = format!("no answer within {} s", PROBE_TIMEOUT.as_secs());
                Finding::fail("database", found, fix)
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
    let probe = probe.filter(|probe| probe.is_configured(config))?;
    if let Some(asked) = probe.containers(&config.sandbox, environment).await {
        let fix =
            "start the engine or the provisioner and see docs/sandbox.md; until then commands fail";
        return Some(asked.map_or_else(
            |cause| {
                Finding::warn(
                    subject,
                    format!("containers are not available: {cause}"),
                    fix,
                )
            },
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
            let found = "sandboxed, but with `sandbox.network: host` commands have full network access, including to ports of this machine";
            Finding::warn(
                subject,
                found,
                "list the hosts that commands need under `sandbox.network.allow`",
            )
        }
        (true, true) => Finding::ok(subject, format!("sandboxed: {active}")),
        (true, false) => Finding::ok(subject, format!("sandboxed: {active}; without {missing}")),
        (false, _) => {
            let fix = "install bubblewrap 0.8 and allow user namespaces, see docs/sandbox.md; until then the bash tool is left out";
            Finding::warn(
                subject,
                format!("refused, the sandbox does not work here: {missing}"),
                fix,
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
        tokio::time::timeout(PROBE_TIMEOUT, probe.probe(&config.stream_bridge, settings)).await;
    let subject = "stream bridge";
    let fix =
        "set maxmemory-policy to noeviction on the server: it may evict the streams of active runs";
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
            Finding::fail(subject, found, fix)
        }
        Ok(Ok(Err(found))) => Finding::warn(subject, found, fix),
        Ok(Err(cause)) => unreachable(cause),
        Err(_) => unreachable(format!("no answer within {} s", PROBE_TIMEOUT.as_secs())),
    })
}

#[cfg(test)]
#[path = "doctor_tests.rs"]
mod tests;

//! Single checks of `deerflow doctor`. None of them changes anything.

use std::io;
use std::path::Path;
use std::time::Duration;

use harness::acp::missing_program;
use harness::config::{AcpAgentConfig, AppConfig, DatabaseBackend, DatabaseConfig};
use harness::config_file::{ConfigError, Environment, Loaded};
use rustix::fs::Access;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::probes::ProviderProbe;
use super::report::{Finding, Verdict};
use crate::config::{Exposure, Settings, missing_classes};
use crate::listener::{BACKLOG, ListenError, cap_warning, listen};
use crate::open_files::{MIN_OPEN_FILES, low_warning};

/// Free bytes below which the check fails.
const MIN_FREE_BYTES: u64 = 64 * 1024 * 1024;
/// Free bytes below which the check warns.
const LOW_FREE_BYTES: u64 = 1024 * 1024 * 1024;
/// Service name in the response of `GET /health`, and the maximum number of bytes read.
const SERVICE: &[u8] = b"\"deer-flow-gateway\"";
const MAX_HEALTH_BYTES: u64 = 16 * 1024;

pub(super) fn configuration(loaded: &Result<Loaded, ConfigError>) -> Vec<Finding> {
    let subject = "configuration";
    match loaded {
        Err(error) => {
            let fix =
                "fix the reported setting; `deerflow config example` prints a commented example";
            vec![Finding::fail(subject, error.to_string(), fix)]
        }
        Ok(Loaded { path: None, .. }) => vec![Finding::warn(
            subject,
            "no config.yaml found, the built-in defaults with a scripted model are used",
            "`deerflow config example > config.yaml`, then name your models in it",
        )],
        Ok(Loaded {
            path: Some(path),
            warnings,
            ..
        }) => {
            let mut findings = vec![Finding::ok(subject, format!("{} is valid", path.display()))];
            findings.extend(warnings.iter().map(|warning| {
                Finding::warn(subject, warning.to_string(), "fix the reported setting")
            }));
            findings
        }
    }
}

pub(super) fn models(config: &AppConfig, probe: Option<&dyn ProviderProbe>) -> Vec<Finding> {
    let subject = "models";
    if config.models.is_empty() {
        return vec![Finding::fail(
            subject,
            "none is configured",
            "add an entry to `models` in config.yaml; `deerflow config example` shows one",
        )];
    }
    let mut findings: Vec<Finding> = config
        .models
        .iter()
        .map(|model| {
            let provider = probe.map_or(Ok(model.provider.clone()), |probe| probe.probe(model));
            match (model.require_resolved(), provider) {
                (Err(missing), _) => {
                    let fix = format!("set {} in the environment or in .env", missing.variable);
                    Finding::warn(subject, missing.to_string(), fix)
                }
                (_, Err(cause)) => {
                    let fix = "fix this entry of `models`, or what it refers to";
                    Finding::warn(
                        subject,
                        format!("`{}` cannot be used: {cause}", model.name),
                        fix,
                    )
                }
                (_, Ok(kind)) => Finding::ok(subject, format!("`{}` through {kind}", model.name)),
            }
        })
        .collect();
    if findings
        .iter()
        .all(|finding| finding.verdict != Verdict::Ok)
    {
        let fix = "fix at least one of the entries above";
        findings.push(Finding::fail(subject, "none of them can be used", fix));
    }
    findings
}

/// Classes named under `use` that do not exist; models have their own findings.
pub(super) fn classes(config: &AppConfig) -> Vec<Finding> {
    let missing = missing_classes(config)
        .into_iter()
        .filter(|missing| missing.section != "models");
    missing
        .map(|missing| {
            Finding::warn(
                missing.section,
                missing.problem,
                "use a class that docs/ or `deerflow config example` lists",
            )
        })
        .collect()
}

pub(super) fn acp_agents(config: &AppConfig, environment: &Environment) -> Vec<Finding> {
    let subject = "acp agents";
    let found = |(name, agent): (&String, &AcpAgentConfig)| match missing_program(
        name,
        agent,
        environment.get("PATH").unwrap_or_default(),
    ) {
        None => Finding::ok(subject, format!("`{name}` starts `{}`", agent.command)),
        Some(missing) => Finding::warn(
            subject,
            format!("`{name}` cannot work: {missing}"),
            "fix this entry; until then its calls fail",
        ),
    };
    config.acp_agents.iter().map(found).collect()
}

pub(super) fn exposure(settings: &Settings) -> Finding {
    let subject = "authentication";
    match settings.exposure() {
        Ok(Exposure::Anywhere) => Finding::warn(
            subject,
            Exposure::Anywhere.to_string(),
            "make sure that a proxy in front of this server authenticates users",
        ),
        Ok(exposure) => Finding::ok(subject, exposure.to_string()),
        Err(error) => Finding::fail(
            subject,
            error.to_string(),
            "unset DEER_FLOW_AUTH_DISABLED, or set DEER_FLOW_ALLOW_INSECURE_BIND=1",
        ),
    }
}

pub(super) async fn port(settings: &Settings, limit: Duration) -> Finding {
    let subject = "port";
    let address = format!("{}:{}", settings.host, settings.port);
    match listen(settings).await {
        Ok(_) => Finding::ok(subject, format!("{address} is free")),
        Err(ListenError::InUse { .. })
            if is_deerflow(settings.bare_host(), settings.port, limit).await =>
        {
            Finding::ok(subject, format!("a running deerflow answers at {address}"))
        }
        Err(ListenError::InUse { .. }) => Finding::fail(
            subject,
            format!("{address} is in use"),
            "stop what listens there, or choose another GATEWAY_PORT",
        ),
        Err(ListenError::Denied { .. }) => Finding::fail(
            subject,
            format!("{address} may not be used by this user"),
            "choose a GATEWAY_PORT of 1024 or more",
        ),
        Err(error @ ListenError::Unresolved { .. }) => Finding::fail(
            subject,
            error.to_string(),
            "set GATEWAY_HOST to an address, or to a name that this machine resolves",
        ),
        Err(error) => Finding::fail(
            subject,
            format!("{address} cannot be used: {error}"),
            "set GATEWAY_HOST to an address of this machine",
        ),
    }
}

pub(super) fn connection_queue(cap: Option<u32>) -> Finding {
    let subject = "connection queue";
    match cap_warning(cap) {
        Some(warning) => Finding::warn(
            subject,
            warning,
            format!("`sysctl -w net.core.somaxconn={BACKLOG}` on the host"),
        ),
        None => Finding::ok(
            subject,
            format!("{BACKLOG} connections may wait to be accepted"),
        ),
    }
}

/// Reports whether the process that uses the port is a DeerFlow gateway.
async fn is_deerflow(host: &str, port: u16, limit: Duration) -> bool {
    let health_request = async {
        let mut socket = tokio::net::TcpStream::connect((host, port)).await?;
        socket
            .write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            .await?;
        let mut answer = Vec::new();
        socket
            .take(MAX_HEALTH_BYTES)
            .read_to_end(&mut answer)
            .await?;
        io::Result::Ok(answer.windows(SERVICE.len()).any(|words| words == SERVICE))
    };
    matches!(
        tokio::time::timeout(limit, health_request).await,
        Ok(Ok(true))
    )
}

pub(super) fn writable(subject: &'static str, directory: &Path) -> Finding {
    let existing = nearest_existing(directory);
    match may_write(existing) {
        Ok(()) if existing == directory => {
            Finding::ok(subject, format!("{} is writable", directory.display()))
        }
        Ok(()) => Finding::ok(subject, format!("{} can be created", directory.display())),
        Err(error) => Finding::fail(
            subject,
            format!("{} is not writable: {error}", existing.display()),
            "give this user the right to write there, or set DEER_FLOW_HOME to another directory",
        ),
    }
}

pub(super) fn database_directory(database: &DatabaseConfig, settings: &Settings) -> Vec<Finding> {
    match database.backend {
        DatabaseBackend::Sqlite => {
            let directory = settings.sqlite_dir(database);
            vec![
                writable("database directory", &directory),
                free_space(nearest_existing(&directory)),
            ]
        }
        DatabaseBackend::Memory => vec![Finding::warn(
            "database",
            "all data is lost when the process ends, because `database.backend` is memory",
            "set `database.backend` to sqlite or postgres to keep conversations",
        )],
        _ => Vec::new(),
    }
}

pub(super) fn open_files(hard: Option<u64>) -> Finding {
    let subject = "open files";
    match (low_warning(hard), hard) {
        (Some(warning), _) => {
            let fix = format!(
                "raise the hard limit: `ulimit -Hn {MIN_OPEN_FILES}` or LimitNOFILE of the service"
            );
            Finding::warn(subject, warning, fix)
        }
        (None, Some(limit)) => Finding::ok(
            subject,
            format!("up to {limit}: a server raises its limit to the hard one"),
        ),
        (None, None) => Finding::ok(subject, "no limit"),
    }
}

fn free_space(directory: &Path) -> Finding {
    let subject = "disk";
    let fix = "free some space, or point `database.sqlite_dir` to another disk";
    let bytes = match rustix::fs::statvfs(directory) {
        Ok(disk) => disk.f_bavail.saturating_mul(disk.f_frsize),
        Err(error) => {
            let found = format!(
                "the free space of {} is unknown: {error}",
                directory.display()
            );
            return Finding::warn(subject, found, fix);
        }
    };
    let found = format!(
        "{} MiB free under {}",
        bytes / (1024 * 1024),
        directory.display()
    );
    match bytes {
        ..MIN_FREE_BYTES => Finding::fail(subject, found, fix),
        MIN_FREE_BYTES..LOW_FREE_BYTES => Finding::warn(subject, found, fix),
        LOW_FREE_BYTES.. => Finding::ok(subject, found),
    }
}

fn nearest_existing(directory: &Path) -> &Path {
    directory
        .ancestors()
        .find(|ancestor| ancestor.exists())
        .unwrap_or(directory)
}

fn may_write(directory: &Path) -> io::Result<()> {
    if !directory.is_dir() {
        return Err(io::Error::from(io::ErrorKind::NotADirectory));
    }
    Ok(rustix::fs::access(
        directory,
        Access::WRITE_OK | Access::EXEC_OK,
    )?)
}

//! Client of the HTTP API of an all-in-one sandbox image, limited to what commands need.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Url;
use serde::Deserialize;
use serde_json::json;

use super::error::ContainerError;
use super::http_service::{Call, HttpService};
use crate::sandbox::command::{CommandEnd, CommandLimits, CommandOutput, Pipe};

/// Script that runs a command and reports its end.
const LAUNCH_SCRIPT: &str = include_str!("launch.sh");
/// Script that kills a command, also one that has not started yet.
const CANCEL_SCRIPT: &str = include_str!("cancel.sh");
/// Time after a command's time limit in which its end may be reported.
const REPORT_GRACE: Duration = Duration::from_secs(15);
/// Timeout for killing a command.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum output of a command in bytes: all of it arrives in one response.
const MAX_OUTPUT_BYTES: u64 = 8 << 20;

/// Client of the APIs inside the containers.
#[derive(Debug)]
pub(super) struct SandboxApi {
    any: HttpService,
    /// `true` if the images predate `/v1/bash`.
    is_legacy: AtomicBool,
}

/// A command to run.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommandJob<'a> {
    /// Unique marker of the command.
    pub(super) mark: &'a str,
    pub(super) command: &'a str,
    pub(super) time_limit: Duration,
    pub(super) limits: &'a CommandLimits,
}

/// End and output of a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) end: CommandEnd,
    out: Vec<u8>,
    err: Vec<u8>,
}

#[derive(Debug, Deserialize)]
struct Envelope {
    #[serde(default)]
    data: Option<Printed>,
}

/// `output` is the content of the shell's terminal, `stdout` the output of `/v1/bash`.
#[derive(Debug, Deserialize)]
struct Printed {
    #[serde(default)]
    output: Option<String>,
    #[serde(default)]
    stdout: Option<String>,
}

impl SandboxApi {
    pub(super) fn new() -> Result<Self, reqwest::Error> {
        Ok(Self {
            any: HttpService::without_address("the sandbox")?,
            is_legacy: AtomicBool::new(false),
        })
    }

    /// Reports whether the API responds.
    pub(super) async fn is_ready(&self, url: &Url) -> bool {
        let call = Call::get("/v1/sandbox").within(Duration::from_secs(5));
        self.any
            .with_base(url)
            .call(call)
            .await
            .is_ok_and(|response| response.status == 200)
    }

    /// Uploads the script of a command without running it.
    pub(super) async fn prepare(
        &self,
        url: &Url,
        job: CommandJob<'_>,
    ) -> Result<(), ContainerError> {
        let file =
            json!({"file": format!("/tmp/deerflow-{}.sh", job.mark), "content": script(job)});
        self.any
            .with_base(url)
            .call(Call::post("/v1/file/write", file))
            .await?
            .check_status()
    }

    /// Runs the uploaded script.
    pub(super) async fn run(
        &self,
        url: &Url,
        job: CommandJob<'_>,
    ) -> Result<Report, ContainerError> {
        let start = format!("bash /tmp/deerflow-{}.sh", job.mark);
        let max_bytes = usize::try_from(output_limit(job.limits)).unwrap_or(usize::MAX);
        // Two outputs in base64 (four characters per three bytes), with line breaks.
        let bytes = max_bytes.saturating_mul(3).saturating_add(64 << 10);
        let printed = self
            .shell(url, job.mark, &start, job.time_limit + REPORT_GRACE, bytes)
            .await?;
        let why = || ContainerError::Unreadable {
            peer: "the sandbox".to_owned(),
            why: "the end of the command is missing".to_owned(),
        };
        read_report(&printed, job.mark).ok_or_else(why)
    }

    /// Kills a command with all processes that it started.
    pub(super) async fn cancel(&self, url: &Url, mark: &str) -> Result<(), ContainerError> {
        let script = format!("mark={mark}\n{CANCEL_SCRIPT}");
        self.shell(
            url,
            &format!("{mark}-end"),
            &script,
            CANCEL_TIMEOUT,
            64 << 10,
        )
        .await
        .map(drop)
    }

    /// Runs a script and returns its output. Older images only offer terminals.
    async fn shell(
        &self,
        url: &Url,
        session: &str,
        script: &str,
        time: Duration,
        bytes: usize,
    ) -> Result<String, ContainerError> {
        let peer = self.any.with_base(url);
        let seconds = time.as_secs();
        if !self.is_legacy.load(Ordering::Relaxed) {
            let body = json!({"command": script, "hard_timeout": seconds, "max_output_length": 0});
            let response = peer
                .call(
                    Call::post("/v1/bash/exec", body)
                        .within(time)
                        .max_bytes(bytes),
                )
                .await?;
            if response.status != 404 {
                return Ok(response
                    .read::<Envelope>()?
                    .data
                    .and_then(|data| data.stdout)
                    .unwrap_or_default());
            }
            self.is_legacy.store(true, Ordering::Relaxed);
        }
        peer.call(Call::post(
            "/v1/shell/sessions/create",
            json!({"id": session}),
        ))
        .await?
        .check_status()?;
        let body = json!({"id": session, "command": script, "no_change_timeout": seconds, "truncate": false});
        let response = peer
            .call(
                Call::post("/v1/shell/exec", body)
                    .within(time)
                    .max_bytes(bytes),
            )
            .await;
        let path = format!("/v1/shell/sessions/{session}");
        if let Err(error) = peer.call(Call::delete(&path)).await {
            tracing::debug!(%error, "cannot close a session in a sandbox");
        }
        Ok(response?
            .read::<Envelope>()?
            .data
            .and_then(|data| data.output)
            .unwrap_or_default())
    }
}

impl Report {
    /// Passes the output on and returns the end.
    pub(super) fn write_to(self, output: &mut dyn CommandOutput) -> CommandEnd {
        output.take(Pipe::Out, &self.out);
        output.take(Pipe::Err, &self.err);
        self.end
    }
}

fn output_limit(limits: &CommandLimits) -> u64 {
    limits.output_bytes.min(MAX_OUTPUT_BYTES)
}

/// Returns the launch script with its arguments.
fn script(job: CommandJob<'_>) -> String {
    let CommandJob {
        mark,
        command,
        time_limit,
        limits,
    } = job;
    let kib = |bytes: u64| bytes / 1024;
    let mut script = format!(
        "set -- {mark} {:.3} {}",
        time_limit.as_secs_f64(),
        output_limit(limits)
    );
    let sizes = [
        kib(limits.memory_bytes),
        kib(limits.file_bytes),
        limits.open_files,
        limits.cpu_seconds,
    ];
    for size in sizes {
        // Writing to a string never fails.
        let _written = write!(script, " {size}");
    }
    format!(
        "{script} '{}'\n{LAUNCH_SCRIPT}",
        command.replace('\'', r"'\''")
    )
}

/// Finds the launcher's report in the output; a terminal shows more than the report.
fn read_report(printed: &str, mark: &str) -> Option<Report> {
    let lines: Vec<&str> = printed.lines().map(str::trim).collect();
    let begin = lines.iter().rposition(|line| {
        line.strip_prefix(mark)
            .is_some_and(|rest| rest.starts_with(' '))
    })?;
    let mut verdict = lines[begin].split(' ').skip(1);
    let (why, code) = (verdict.next()?, verdict.next()?.parse().ok()?);
    let end = match why {
        "end" => CommandEnd::Exited(code),
        "late" => CommandEnd::TimedOut,
        "much" => CommandEnd::TooMuchOutput,
        _ => return None,
    };
    let mut parts = lines[begin + 1..].split(|line| *line == mark);
    let mut bytes = || STANDARD.decode(parts.next()?.concat()).ok();
    let (out, err) = (bytes()?, bytes()?);
    // The last line is present unless the output was truncated.
    parts.next().map(|_| Report { end, out, err })
}

#[cfg(test)]
#[path = "api_tests.rs"]
mod tests;

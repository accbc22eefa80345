//! The HTTP API of an all-in-one sandbox, as far as commands need it.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Url;
use serde::Deserialize;
use serde_json::json;

use super::error::ContainerError;
use super::peer::{Call, Peer};
use crate::sandbox::command::{CommandEnd, CommandLimits, CommandOutput, Pipe};

/// Runs a command and tells of its end.
const LAUNCH: &str = include_str!("launch.sh");
/// Ends a command that was launched, or will be.
const CANCEL: &str = include_str!("cancel.sh");
/// How long after its time a command's end may be told.
const GRACE: Duration = Duration::from_secs(15);
/// How long ending a command may take.
const CANCEL_LIMIT: Duration = Duration::from_secs(15);
/// The longest output of a command in bytes: all of it comes in one answer.
const MOST_OUTPUT: u64 = 8 << 20;

/// Calls the APIs inside of containers.
#[derive(Debug)]
pub(super) struct Inside {
    any: Peer,
    /// Whether images are of the time before `/v1/bash`.
    is_old: AtomicBool,
}

/// A command that is to be run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Errand<'a> {
    /// A word that no other command has.
    pub(super) mark: &'a str,
    pub(super) command: &'a str,
    pub(super) time_limit: Duration,
    pub(super) limits: &'a CommandLimits,
}

/// How a command ended, and what it printed.
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

/// `output` is what the shell's terminal shows, `stdout` what the other one's pipe gave.
#[derive(Debug, Deserialize)]
struct Printed {
    #[serde(default)]
    output: Option<String>,
    #[serde(default)]
    stdout: Option<String>,
}

impl Inside {
    pub(super) fn new() -> Result<Self, reqwest::Error> {
        Ok(Self {
            any: Peer::anywhere("the sandbox")?,
            is_old: AtomicBool::new(false),
        })
    }

    /// Whether the API answers.
    pub(super) async fn answers(&self, url: &Url) -> bool {
        let call = Call::get("/v1/sandbox").within(Duration::from_secs(5));
        self.any
            .moved_to(url)
            .call(call)
            .await
            .is_ok_and(|answer| answer.status == 200)
    }

    /// Lays down what will be run. Nothing runs yet.
    pub(super) async fn prepare(
        &self,
        url: &Url,
        errand: Errand<'_>,
    ) -> Result<(), ContainerError> {
        let file =
            json!({"file": format!("/tmp/deerflow-{}.sh", errand.mark), "content": script(errand)});
        self.any
            .moved_to(url)
            .call(Call::post("/v1/file/write", file))
            .await?
            .done()
    }

    /// Runs what was laid down.
    pub(super) async fn run(
        &self,
        url: &Url,
        errand: Errand<'_>,
    ) -> Result<Report, ContainerError> {
        let start = format!("bash /tmp/deerflow-{}.sh", errand.mark);
        let most = usize::try_from(output_limit(errand.limits)).unwrap_or(usize::MAX);
        // Two outputs, of which four characters say three bytes, broken into lines.
        let bytes = most.saturating_mul(3).saturating_add(64 << 10);
        let printed = self
            .shell(url, errand.mark, &start, errand.time_limit + GRACE, bytes)
            .await?;
        let why = || ContainerError::Unreadable {
            peer: "the sandbox".to_owned(),
            why: "it does not tell how the command ended".to_owned(),
        };
        read_report(&printed, errand.mark).ok_or_else(why)
    }

    /// Ends a command with everything that it started.
    pub(super) async fn cancel(&self, url: &Url, mark: &str) -> Result<(), ContainerError> {
        let script = format!("mark={mark}\n{CANCEL}");
        self.shell(url, &format!("{mark}-end"), &script, CANCEL_LIMIT, 64 << 10)
            .await
            .map(drop)
    }

    /// What a script prints. Images of old have terminals alone.
    async fn shell(
        &self,
        url: &Url,
        session: &str,
        script: &str,
        time: Duration,
        bytes: usize,
    ) -> Result<String, ContainerError> {
        let peer = self.any.moved_to(url);
        let seconds = time.as_secs();
        if !self.is_old.load(Ordering::Relaxed) {
            let body = json!({"command": script, "hard_timeout": seconds, "max_output_length": 0});
            let answer = peer
                .call(
                    Call::post("/v1/bash/exec", body)
                        .within(time)
                        .of_at_most(bytes),
                )
                .await?;
            if answer.status != 404 {
                return Ok(answer
                    .read::<Envelope>()?
                    .data
                    .and_then(|data| data.stdout)
                    .unwrap_or_default());
            }
            self.is_old.store(true, Ordering::Relaxed);
        }
        peer.call(Call::post(
            "/v1/shell/sessions/create",
            json!({"id": session}),
        ))
        .await?
        .done()?;
        let body = json!({"id": session, "command": script, "no_change_timeout": seconds, "truncate": false});
        let answer = peer
            .call(
                Call::post("/v1/shell/exec", body)
                    .within(time)
                    .of_at_most(bytes),
            )
            .await;
        let path = format!("/v1/shell/sessions/{session}");
        if let Err(error) = peer.call(Call::delete(&path)).await {
            tracing::debug!(%error, "a session in a sandbox was not closed");
        }
        Ok(answer?
            .read::<Envelope>()?
            .data
            .and_then(|data| data.output)
            .unwrap_or_default())
    }
}

impl Report {
    /// Passes on what was printed.
    pub(super) fn tell(self, output: &mut dyn CommandOutput) -> CommandEnd {
        output.take(Pipe::Out, &self.out);
        output.take(Pipe::Err, &self.err);
        self.end
    }
}

fn output_limit(limits: &CommandLimits) -> u64 {
    limits.output_bytes.min(MOST_OUTPUT)
}

/// The launcher with its arguments.
fn script(errand: Errand<'_>) -> String {
    let Errand {
        mark,
        command,
        time_limit,
        limits,
    } = errand;
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
        // Writing into a string does not fail.
        let _written = write!(script, " {size}");
    }
    format!("{script} '{}'\n{LAUNCH}", command.replace('\'', r"'\''"))
}

/// What the launcher says, wherever it stands in what was printed: a terminal shows more than that.
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
    // The last line is there when nothing was cut off.
    parts.next().map(|_| Report { end, out, err })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_found_among_what_a_terminal_shows() {
        let shown = "$ bash x\r\nm1 end 7\r\nb3V0\r\nCg==\r\nm1\r\nZXJyCg==\r\nm1\r\n$ ";
        let report = read_report(shown, "m1").unwrap();
        assert_eq!(
            report,
            Report {
                end: CommandEnd::Exited(7),
                out: b"out\n".to_vec(),
                err: b"err\n".to_vec()
            }
        );
        assert_eq!(
            read_report("m1 late 137\nm1\nm1\n", "m1").unwrap().end,
            CommandEnd::TimedOut
        );
    }

    #[test]
    fn what_is_no_report_is_refused() {
        for broken in [
            "",
            "m1",
            "m1 end",
            "m1 end x\nm1\nm1",
            "m1 odd 0\nm1\nm1",
            "m1 end 0\n!!\nm1\nm1",
            "m1 end 0\nb3V0\nm1\nZXJy",
            "m2 end 0\nm2\nm2",
        ] {
            assert_eq!(read_report(broken, "m1"), None, "{broken}");
        }
    }

    #[test]
    fn a_command_is_one_word_of_the_script_whatever_is_in_it() {
        let limits = CommandLimits::default();
        let errand = Errand {
            mark: "m1",
            command: "echo 'it'\\''s'; $(x)",
            time_limit: Duration::from_millis(1500),
            limits: &limits,
        };
        let script = script(errand);
        let first = script.lines().next().unwrap();
        assert_eq!(
            first,
            r"set -- m1 1.500 8388608 2097152 1048576 1024 3600 'echo '\''it'\''\'\'''\''s'\''; $(x)'"
        );
    }
}

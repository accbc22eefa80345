//! Supervises a started command: forwards its output and kills it on timeout.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use futures_util::FutureExt;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
#[cfg(feature = "child-process")]
use rustix::process::{WaitId, WaitIdOptions, waitid};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio::task::coop::unconstrained;
#[cfg(feature = "child-process")]
use tokio::time::sleep;
use tokio::time::{Instant, sleep_until};

use super::{CommandEnd, CommandOutput, Pipe};
use crate::sandbox::egress::EgressEndpoint;

/// Time for draining the pipes of an ended command: a remaining process may keep them open.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);
/// Number of final reads from the pipes, several times what both pipes can hold.
const MAX_FINAL_READS: usize = 64;
/// Time for a killed command to exit.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);
/// Poll interval of a process that is waited for.
#[cfg(feature = "child-process")]
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum number of processes whose children are read, in case the tree grows faster than it is
/// read.
const MAX_PROCESSES: usize = 10_000;

/// A started command that leads a process group. On drop, the whole group is killed, including
/// processes that still run after the command ended.
pub(super) struct Running {
    child: Child,
    group: Option<Pid>,
    /// Our end of the socket on which the command checks, before it starts, that this process is
    /// alive.
    lifeline: Option<UnixStream>,
    /// Closed together with the command.
    _egress: Option<Box<dyn EgressEndpoint>>,
}

impl Running {
    pub(super) fn group(child: Child) -> Self {
        let group = child.id().and_then(pid);
        Self {
            child,
            group,
            lifeline: None,
            _egress: None,
        }
    }

    /// Sets the lifeline: the socket on which the command checks, before it starts, that it is
    /// still supervised.
    #[cfg(target_os = "linux")]
    pub(super) fn with_lifeline(mut self, lifeline: UnixStream) -> Self {
        self.lifeline = Some(lifeline);
        self
    }

    /// Sets the command's connection to the egress proxy.
    #[cfg(target_os = "linux")]
    pub(super) fn with_egress(mut self, egress: Option<Box<dyn EgressEndpoint>>) -> Self {
        self._egress = egress;
        self
    }

    /// Forwards output until the command ends, times out or exceeds the output limit.
    pub(super) async fn follow(
        mut self,
        time_limit: Duration,
        output_limit: u64,
        output: &mut dyn CommandOutput,
    ) -> io::Result<CommandEnd> {
        let mut pipes = Pipes {
            out: self.child.stdout.take(),
            err: self.child.stderr.take(),
            budget: output_limit,
        };
        let mut deadline = Instant::now() + time_limit;
        let mut forced = None;
        let mut exited: Option<ExitStatus> = None;
        let mut lifeline = self.lifeline.take();
        while exited.is_none() || pipes.are_open() {
            tokio::select! {
                // The command sends at most one liveness request.
                _answered = answer_lifeline(lifeline.as_mut()), if lifeline.is_some() => lifeline = None,
                within_limit = pipes.forward(output), if pipes.are_open() => {
                    if !within_limit && forced.is_none() {
                        forced = Some(CommandEnd::TooMuchOutput);
                        kill_tree(&mut self.child);
                        deadline = Instant::now() + KILL_TIMEOUT;
                    }
                }
                status = self.child.wait(), if exited.is_none() => {
                    exited = Some(status?);
                    deadline = deadline.min(Instant::now() + DRAIN_TIMEOUT);
                }
                () = sleep_until(deadline) => {
                    if exited.is_some() || forced.is_some() {
                        if !pipes.forward_available(output) {
                            forced = forced.or(Some(CommandEnd::TooMuchOutput));
                        }
                        break;
                    }
                    forced = Some(CommandEnd::TimedOut);
                    kill_tree(&mut self.child);
                    deadline = Instant::now() + KILL_TIMEOUT;
                }
            }
        }
        Ok(forced.unwrap_or_else(|| CommandEnd::Exited(exited.map_or(-1, code_of))))
    }
}

/// Waits for the liveness request of the command and answers it.
async fn answer_lifeline(lifeline: Option<&mut UnixStream>) -> io::Result<()> {
    let Some(lifeline) = lifeline else {
        return Ok(());
    };
    lifeline.read_u8().await?;
    lifeline.write_all(b"y").await
}

impl Drop for Running {
    fn drop(&mut self) {
        kill_tree(&mut self.child);
        // A group id is in use as long as the group has a member, and is not reused soon after.
        if let Some(group) = self.group {
            let _gone = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Kills the leader of a process group, its group, and its descendants outside of the group.
pub(crate) fn kill_tree(child: &mut Child) {
    // The id is present until the process is reaped, so it cannot be reused yet.
    if let Some(leader) = child.id().and_then(pid) {
        // Each process may have ended in the meantime.
        for process in descendants_of(leader) {
            let _gone = kill_process(process, Signal::KILL);
        }
        let _gone = kill_process_group(leader, Signal::KILL);
    }
    let _gone = child.start_kill();
}

/// Waits until a process has ended, without reaping it: until then its process id and group id are
/// not reused.
#[cfg(feature = "child-process")]
pub(crate) async fn wait_exited(child: &Child) {
    let Some(process) = child.id().and_then(pid) else {
        return;
    };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    while let Ok(None) = waitid(WaitId::Pid(process), options) {
        sleep(EXIT_POLL_INTERVAL).await;
    }
}

/// Known descendants of a process, recorded while it was alive.
#[cfg(feature = "child-process")]
#[derive(Debug, Default)]
pub(crate) struct Descendants(Vec<(Pid, String)>);

#[cfg(feature = "child-process")]
impl Descendants {
    /// Adds the current descendants and removes those that have ended.
    pub(crate) fn note(&mut self, child: &Child) {
        self.0
            .retain(|(process, start_time)| start_time_of(*process).as_ref() == Some(start_time));
        let below = child
            .id()
            .and_then(pid)
            .map(descendants_of)
            .unwrap_or_default();
        let below: Vec<_> = below
            .into_iter()
            .filter_map(|process| Some((process, start_time_of(process)?)))
            .collect();
        self.0.retain(|known| !below.contains(known));
        self.0.extend(below);
    }

    /// Kills the recorded processes that are still alive, and their descendants.
    pub(crate) fn kill(&self) {
        for (process, start_time) in &self.0 {
            let further = descendants_of(*process);
            // The id may belong to another process by now.
            if start_time_of(*process).as_ref() == Some(start_time) {
                for process in further.into_iter().chain([*process]) {
                    let _gone = kill_process(process, Signal::KILL);
                }
            }
        }
    }
}

/// Start time of a process as reported by the kernel; `None` if unavailable.
#[cfg(feature = "child-process")]
fn start_time_of(process: Pid) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).ok()?;
    // The 20th field after the process name; the name itself may contain any character.
    stat.rsplit_once(") ")?
        .1
        .split(' ')
        .nth(19)
        .map(str::to_owned)
}

struct Pipes<Out, Err> {
    out: Option<Out>,
    err: Option<Err>,
    budget: u64,
}

impl<Out: AsyncRead + Unpin, Err: AsyncRead + Unpin> Pipes<Out, Err> {
    fn are_open(&self) -> bool {
        self.out.is_some() || self.err.is_some()
    }

    /// Forwards the next chunk; returns `false` when the limit is exceeded.
    async fn forward(&mut self, output: &mut dyn CommandOutput) -> bool {
        let mut out = [0; 8 * 1024];
        let mut err = [0; 8 * 1024];
        let (pipe, read) = tokio::select! {
            read = read(&mut self.out, &mut out) => (Pipe::Out, read),
            read = read(&mut self.err, &mut err) => (Pipe::Err, read),
        };
        // A read error ends the pipe.
        match (pipe, read.unwrap_or(0)) {
            (Pipe::Out, 0) => self.out = None,
            (Pipe::Err, 0) => self.err = None,
            (pipe, length) => {
                let bytes = if pipe == Pipe::Out {
                    &out[..length]
                } else {
                    &err[..length]
                };
                let accepted =
                    usize::try_from(self.budget).map_or(length, |budget| budget.min(length));
                output.take(pipe, &bytes[..accepted]);
                self.budget -= accepted as u64;
                return accepted == length;
            }
        }
        true
    }

    /// Forwards available output without waiting; returns `false` when the limit is exceeded. The
    /// number of reads is bounded, for commands that never stop printing.
    fn forward_available(&mut self, output: &mut dyn CommandOutput) -> bool {
        for _ in 0..MAX_FINAL_READS {
            if !self.are_open() {
                break;
            }
            // Without the cooperative budget: a pipe with data must be read even if this task
            // should yield.
            match unconstrained(self.forward(output)).now_or_never() {
                Some(true) => {}
                Some(false) => return false,
                None => break,
            }
        }
        true
    }
}

async fn read(pipe: &mut Option<impl AsyncRead + Unpin>, buffer: &mut [u8]) -> io::Result<usize> {
    match pipe {
        Some(pipe) => pipe.read(buffer).await,
        None => std::future::pending().await,
    }
}

/// Exit code as a shell reports it.
pub(super) fn code_of(status: ExitStatus) -> i32 {
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(-1)
}

/// Descendants of a process, parents before children; empty if the kernel does not report them.
fn descendants_of(leader: Pid) -> Vec<Pid> {
    let mut found = children_of(leader);
    let mut visited = 0;
    while let Some(&next) = found.get(visited).filter(|_| visited < MAX_PROCESSES) {
        found.extend(children_of(next));
        visited += 1;
    }
    found
}

/// Live children of a process; empty if the kernel does not report them.
fn children_of(parent: Pid) -> Vec<Pid> {
    let threads = std::fs::read_dir(format!("/proc/{}/task", parent.as_raw_nonzero()))
        .into_iter()
        .flatten()
        .flatten();
    let listed =
        threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    listed
        .flat_map(|listed| {
            listed
                .split_ascii_whitespace()
                .filter_map(|child| pid(child.parse().ok()?))
                .collect::<Vec<_>>()
        })
        .collect()
}

fn pid(raw: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(raw).ok()?)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt, duplex, repeat};
    use tokio::task::coop::consume_budget;

    use super::*;
    use crate::sandbox::command::Transcript;

    #[tokio::test]
    async fn final_output_is_forwarded_without_waiting() {
        let (mut printing, out) = duplex(1_024);
        printing.write_all(b"last words").await.unwrap();
        let mut pipes = Pipes {
            out: Some(out),
            err: Some(&b"a complaint"[..]),
            budget: 100,
        };
        for _ in 0..1_000 {
            let _used_up = consume_budget().now_or_never();
        }
        let mut transcript = Transcript::with_limit(100);
        assert!(pipes.forward_available(&mut transcript));
        assert_eq!(
            (transcript.out().as_str(), transcript.err().as_str()),
            ("last words", "a complaint")
        );
        assert!(
            pipes.out.is_some() && pipes.err.is_none(),
            "standard output is still open, standard error has ended"
        );
    }

    #[test]
    fn final_reads_are_bounded() {
        let mut pipes = Pipes {
            out: Some(repeat(b'x')),
            err: None::<&[u8]>,
            budget: u64::MAX,
        };
        assert!(pipes.forward_available(&mut Transcript::with_limit(1)));
        assert!(pipes.are_open());
    }

    #[test]
    fn final_output_counts_towards_limit() {
        let mut pipes = Pipes {
            out: Some(&b"too much"[..]),
            err: None::<&[u8]>,
            budget: 3,
        };
        let mut transcript = Transcript::with_limit(100);
        assert!(!pipes.forward_available(&mut transcript));
        assert_eq!(transcript.out(), "too");
    }
}

//! Looking after a started command: passing on what it prints, and ending it in time.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use futures_util::FutureExt;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
#[cfg(feature = "mcp")]
use rustix::process::{WaitId, WaitIdOptions, waitid};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio::task::coop::unconstrained;
#[cfg(feature = "mcp")]
use tokio::time::sleep;
use tokio::time::{Instant, sleep_until};

use super::{CommandEnd, CommandOutput, Pipe};
use crate::sandbox::egress::Way;

/// How long the pipes of an ended command are listened to: something it left behind may hold them open.
const AFTERMATH: Duration = Duration::from_millis(200);
/// How many pieces are taken of what its pipes hold when they are no longer listened to: several times as many as fit into both.
const LAST_PIECES: usize = 64;
/// How long a killed command may take to be gone.
const DYING: Duration = Duration::from_secs(2);
/// How often a process is looked at that is waited for.
#[cfg(feature = "mcp")]
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
/// How many processes are asked for those below them: a tree that grows faster than it is read must not hold anybody up.
const MOST_PROCESSES: usize = 10_000;

/// A started command that leads a process group. Dropped, it is killed with its group; so is what it left in the group when it ended.
pub(super) struct Running {
    child: Child,
    group: Option<Pid>,
    /// Our end of the socket at which it asks whether this process lives.
    lifeline: Option<UnixStream>,
    /// Closed with it.
    _way: Option<Box<dyn Way>>,
}

impl Running {
    pub(super) fn group(child: Child) -> Self {
        let group = child.id().and_then(pid);
        Self {
            child,
            group,
            lifeline: None,
            _way: None,
        }
    }

    /// One that does not begin before it is told at this socket, where it asks, that it is still followed.
    pub(super) fn asking_at(mut self, lifeline: UnixStream) -> Self {
        self.lifeline = Some(lifeline);
        self
    }

    /// One that has this way out.
    pub(super) fn with(mut self, way: Option<Box<dyn Way>>) -> Self {
        self._way = way;
        self
    }

    /// Follows it to its end.
    pub(super) async fn follow(
        mut self,
        time_limit: Duration,
        output_limit: u64,
        output: &mut dyn CommandOutput,
    ) -> io::Result<CommandEnd> {
        let mut pipes = Pipes {
            out: self.child.stdout.take(),
            err: self.child.stderr.take(),
            left: output_limit,
        };
        let mut deadline = Instant::now() + time_limit;
        let mut forced = None;
        let mut exited: Option<ExitStatus> = None;
        let mut lifeline = self.lifeline.take();
        while exited.is_none() || pipes.are_open() {
            tokio::select! {
                // It asks once, or has ended before it could.
                _answered = answer(lifeline.as_mut()), if lifeline.is_some() => lifeline = None,
                within_limit = pipes.pass_on(output), if pipes.are_open() => {
                    if !within_limit && forced.is_none() {
                        forced = Some(CommandEnd::TooMuchOutput);
                        kill_tree(&mut self.child);
                        deadline = Instant::now() + DYING;
                    }
                }
                status = self.child.wait(), if exited.is_none() => {
                    exited = Some(status?);
                    deadline = deadline.min(Instant::now() + AFTERMATH);
                }
                () = sleep_until(deadline) => {
                    if exited.is_some() || forced.is_some() {
                        if !pipes.pass_on_what_is_there(output) {
                            forced = forced.or(Some(CommandEnd::TooMuchOutput));
                        }
                        break;
                    }
                    forced = Some(CommandEnd::TimedOut);
                    kill_tree(&mut self.child);
                    deadline = Instant::now() + DYING;
                }
            }
        }
        Ok(forced.unwrap_or_else(|| CommandEnd::Exited(exited.map_or(-1, code_of))))
    }
}

/// Waits for the question whether this process lives, and answers it.
async fn answer(lifeline: Option<&mut UnixStream>) -> io::Result<()> {
    let Some(lifeline) = lifeline else {
        return Ok(());
    };
    lifeline.read_u8().await?;
    lifeline.write_all(b"y").await
}

impl Drop for Running {
    fn drop(&mut self) {
        kill_tree(&mut self.child);
        // A group keeps its number as long as somebody is in it, and an empty one's is not given anew so soon.
        if let Some(group) = self.group {
            let _gone = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Kills a process that leads a group of its own, with its group and whatever it started that has left the group since.
pub(crate) fn kill_tree(child: &mut Child) {
    // An id is there until the end was waited for, so it is nobody else's yet.
    if let Some(leader) = child.id().and_then(pid) {
        // Each may have ended meanwhile.
        for process in descendants_of(leader) {
            let _gone = kill_process(process, Signal::KILL);
        }
        let _gone = kill_process_group(leader, Signal::KILL);
    }
    let _gone = child.start_kill();
}

/// Waits until a process has ended, without burying it: until then its id and its group's are nobody else's.
#[cfg(feature = "mcp")]
pub(crate) async fn ended(child: &Child) {
    let Some(process) = child.id().and_then(pid) else {
        return;
    };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    while let Ok(None) = waitid(WaitId::Pid(process), options) {
        sleep(BETWEEN_LOOKS).await;
    }
}

/// Processes below another, as they were noted while it was there to tell.
#[cfg(feature = "mcp")]
#[derive(Debug, Default)]
pub(crate) struct Below(Vec<(Pid, String)>);

#[cfg(feature = "mcp")]
impl Below {
    /// Adds those below this one now, and forgets those that have ended.
    pub(crate) fn note(&mut self, child: &Child) {
        self.0
            .retain(|(process, birth)| birth_of(*process).as_ref() == Some(birth));
        let below = child
            .id()
            .and_then(pid)
            .map(descendants_of)
            .unwrap_or_default();
        let below: Vec<_> = below
            .into_iter()
            .filter_map(|process| Some((process, birth_of(process)?)))
            .collect();
        self.0.retain(|known| !below.contains(known));
        self.0.extend(below);
    }

    /// Kills those that are still there, with what they have started since.
    pub(crate) fn kill(&self) {
        for (process, birth) in &self.0 {
            let further = descendants_of(*process);
            // Its id may be another's by now.
            if birth_of(*process).as_ref() == Some(birth) {
                for process in further.into_iter().chain([*process]) {
                    let _gone = kill_process(process, Signal::KILL);
                }
            }
        }
    }
}

/// When a process began, in words of the kernel; nothing where that one does not tell.
#[cfg(feature = "mcp")]
fn birth_of(process: Pid) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).ok()?;
    // Behind the name, which may hold anything, it is the twentieth.
    stat.rsplit_once(") ")?
        .1
        .split(' ')
        .nth(19)
        .map(str::to_owned)
}

struct Pipes<Out, Err> {
    out: Option<Out>,
    err: Option<Err>,
    left: u64,
}

impl<Out: AsyncRead + Unpin, Err: AsyncRead + Unpin> Pipes<Out, Err> {
    fn are_open(&self) -> bool {
        self.out.is_some() || self.err.is_some()
    }

    /// Passes on what comes next; `false` when the limit is passed.
    async fn pass_on(&mut self, output: &mut dyn CommandOutput) -> bool {
        let mut out = [0; 8 * 1024];
        let mut err = [0; 8 * 1024];
        let (pipe, read) = tokio::select! {
            read = read(&mut self.out, &mut out) => (Pipe::Out, read),
            read = read(&mut self.err, &mut err) => (Pipe::Err, read),
        };
        // A pipe that fails has nothing more to give.
        match (pipe, read.unwrap_or(0)) {
            (Pipe::Out, 0) => self.out = None,
            (Pipe::Err, 0) => self.err = None,
            (pipe, length) => {
                let bytes = if pipe == Pipe::Out {
                    &out[..length]
                } else {
                    &err[..length]
                };
                let kept = usize::try_from(self.left).map_or(length, |left| left.min(length));
                output.take(pipe, &bytes[..kept]);
                self.left -= kept as u64;
                return kept == length;
            }
        }
        true
    }

    /// Passes on what is there already and waits for nothing; `false` when the limit is passed. Who goes on printing is not listened to
    /// for ever.
    fn pass_on_what_is_there(&mut self, output: &mut dyn CommandOutput) -> bool {
        for _ in 0..LAST_PIECES {
            if !self.are_open() {
                break;
            }
            // Whatever else this task has done in its turn, a pipe that has something gives it.
            match unconstrained(self.pass_on(output)).now_or_never() {
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

/// As a shell tells how a program ended.
pub(super) fn code_of(status: ExitStatus) -> i32 {
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(-1)
}

/// The processes below a process, those that may start others first; none where the kernel does not tell.
fn descendants_of(leader: Pid) -> Vec<Pid> {
    let mut found = children_of(leader);
    let mut looked = 0;
    while let Some(&next) = found.get(looked).filter(|_| looked < MOST_PROCESSES) {
        found.extend(children_of(next));
        looked += 1;
    }
    found
}

/// The processes that a process started and that are there; none where the kernel does not tell.
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
    async fn last_words_are_passed_on_by_a_task_that_should_yield_and_nothing_is_waited_for() {
        let (mut printing, out) = duplex(1_024);
        printing.write_all(b"last words").await.unwrap();
        let mut pipes = Pipes {
            out: Some(out),
            err: Some(&b"a complaint"[..]),
            left: 100,
        };
        for _ in 0..1_000 {
            let _used_up = consume_budget().now_or_never();
        }
        let mut transcript = Transcript::keeping(100);
        assert!(pipes.pass_on_what_is_there(&mut transcript));
        assert_eq!(
            (transcript.out().as_str(), transcript.err().as_str()),
            ("last words", "a complaint")
        );
        assert!(
            pipes.out.is_some() && pipes.err.is_none(),
            "one may still print, the other has ended"
        );
    }

    #[test]
    fn who_never_stops_printing_is_not_listened_to_for_ever() {
        let mut pipes = Pipes {
            out: Some(repeat(b'x')),
            err: None::<&[u8]>,
            left: u64::MAX,
        };
        assert!(pipes.pass_on_what_is_there(&mut Transcript::keeping(1)));
        assert!(pipes.are_open());
    }

    #[test]
    fn last_words_count_towards_the_limit() {
        let mut pipes = Pipes {
            out: Some(&b"too much"[..]),
            err: None::<&[u8]>,
            left: 3,
        };
        let mut transcript = Transcript::keeping(100);
        assert!(!pipes.pass_on_what_is_there(&mut transcript));
        assert_eq!(transcript.out(), "too");
    }
}

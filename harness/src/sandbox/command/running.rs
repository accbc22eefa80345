//! Looking after a started command: passing on what it prints, and ending it in time.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Child;
use tokio::time::{Instant, sleep_until};

use super::{CommandEnd, CommandOutput, Pipe};

/// How long the pipes of an ended command are listened to: something it left behind may hold them open.
const AFTERMATH: Duration = Duration::from_millis(200);
/// How long a killed command may take to be gone.
const DYING: Duration = Duration::from_secs(2);

/// A started command that leads a process group. Dropped, it is killed with its group.
pub(super) struct Running {
    child: Child,
}

impl Running {
    pub(super) fn group(child: Child) -> Self {
        Self { child }
    }

    /// Follows it to its end.
    pub(super) async fn follow(
        mut self,
        time_limit: Duration,
        output_limit: u64,
        output: &mut dyn CommandOutput,
    ) -> io::Result<CommandEnd> {
        let mut pipes = Pipes { out: self.child.stdout.take(), err: self.child.stderr.take(), left: output_limit };
        let mut deadline = Instant::now() + time_limit;
        let mut forced = None;
        let mut exited: Option<ExitStatus> = None;
        while exited.is_none() || pipes.are_open() {
            tokio::select! {
                within_limit = pipes.pass_on(output), if pipes.are_open() => {
                    if !within_limit && forced.is_none() {
                        forced = Some(CommandEnd::TooMuchOutput);
                        self.kill();
                        deadline = Instant::now() + DYING;
                    }
                }
                status = self.child.wait(), if exited.is_none() => {
                    exited = Some(status?);
                    deadline = deadline.min(Instant::now() + AFTERMATH);
                }
                () = sleep_until(deadline) => {
                    if exited.is_some() || forced.is_some() {
                        break;
                    }
                    forced = Some(CommandEnd::TimedOut);
                    self.kill();
                    deadline = Instant::now() + DYING;
                }
            }
        }
        Ok(forced.unwrap_or_else(|| CommandEnd::Exited(exited.map_or(-1, code_of))))
    }

    fn kill(&mut self) {
        // An id is there until the end was waited for, so it is nobody else's yet.
        if let Some(leader) = self.child.id().and_then(pid) {
            // The first process of a sandbox in the making is not tied to its maker yet. Each may have ended meanwhile.
            for child in children_of(leader) {
                let _gone = kill_process(child, Signal::KILL);
            }
            let _gone = kill_process_group(leader, Signal::KILL);
        }
        let _gone = self.child.start_kill();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
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
                let bytes = if pipe == Pipe::Out { &out[..length] } else { &err[..length] };
                let kept = usize::try_from(self.left).map_or(length, |left| left.min(length));
                output.take(pipe, &bytes[..kept]);
                self.left -= kept as u64;
                return kept == length;
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

fn code_of(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}

/// The processes that a process started and that are there; none where the kernel does not tell.
fn children_of(parent: Pid) -> Vec<Pid> {
    let listed = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", parent.as_raw_nonzero())).unwrap_or_default();
    listed.split_ascii_whitespace().filter_map(|child| pid(child.parse().ok()?)).collect()
}

fn pid(raw: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(raw).ok()?)
}

//! Child process with a minimal environment that is killed together with all its descendants.

use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::sandbox::command::{Descendants, kill_tree, wait_exited};

/// Time that a process gets to exit by itself after its input was closed.
const EXIT_GRACE: Duration = Duration::from_secs(2);

/// Directories of a process.
#[derive(Debug, Clone, Default)]
pub struct WorkingDir {
    /// Working directory.
    pub cwd: Option<PathBuf>,
    /// Directory for temporary files.
    pub tmp: Option<PathBuf>,
}

/// Process that leads its own process group. Dropping it kills the process and all its descendants.
#[derive(Debug)]
pub struct ChildTree {
    child: Child,
    descendants: Descendants,
}

/// Pipes to the standard streams of a process.
pub struct StdioPipes {
    /// Standard input.
    pub input: ChildStdin,
    /// Standard output.
    pub output: ChildStdout,
    /// Standard error.
    pub errors: ChildStderr,
}

impl ChildTree {
    /// Starts a program with these environment variables and no others.
    pub fn start<'a>(
        program: &str,
        args: &[String],
        variables: impl Iterator<Item = (&'a str, &'a str)>,
        working_dir: &WorkingDir,
    ) -> io::Result<(Self, StdioPipes)> {
        let mut command = Command::new(program);
        command.args(args).env_clear();
        if let Some(tmp) = &working_dir.tmp {
            command.envs(["TMPDIR", "TMP", "TEMP"].map(|name| (name, tmp)));
        }
        command.envs(variables);
        if let Some(cwd) = &working_dir.cwd {
            command.current_dir(cwd);
        }
        command
            .process_group(0)
            .kill_on_drop(true)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut tree = Self {
            child: command.spawn()?,
            descendants: Descendants::default(),
        };
        let pipes = (
            tree.child.stdin.take(),
            tree.child.stdout.take(),
            tree.child.stderr.take(),
        );
        let (Some(input), Some(output), Some(errors)) = pipes else {
            return Err(io::Error::other("a stream is missing"));
        };
        Ok((
            tree,
            StdioPipes {
                input,
                output,
                errors,
            },
        ))
    }

    /// Records the process's current descendants. After the process has exited they cannot be
    /// determined.
    pub fn record_descendants(&mut self) {
        self.descendants.note(&self.child);
    }

    /// Returns the exit status if the process exits within `EXIT_GRACE`. Kills the remaining
    /// processes of its group.
    #[cfg(feature = "child-process")]
    pub async fn exit_status(&mut self) -> Option<std::process::ExitStatus> {
        timeout(EXIT_GRACE, wait_exited(&self.child)).await.ok()?;
        kill_tree(&mut self.child);
        self.child.try_wait().ok()?
    }

    /// Waits up to `EXIT_GRACE` for the exit of a process whose input was closed, then kills it
    /// and its descendants.
    pub async fn end(self) {
        let _late = timeout(EXIT_GRACE, wait_exited(&self.child)).await;
    }
}

impl Drop for ChildTree {
    fn drop(&mut self) {
        kill_tree(&mut self.child);
        self.descendants.kill();
    }
}

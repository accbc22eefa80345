//! A process of this machine: started with little, and gone with everything below it.

use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::sandbox::command::{Below, ended, kill_tree};

/// How long a process whose input was closed may take to end by itself.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Where a process begins.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place {
    /// Its folder.
    pub(crate) cwd: Option<PathBuf>,
    /// Where it may put temporary files.
    pub(crate) tmp: Option<PathBuf>,
}

/// A process that leads a group of its own. Dropped, it is killed with everything that it started.
#[derive(Debug)]
pub(crate) struct ChildTree {
    child: Child,
    below: Below,
}

/// The ends of its streams.
pub(crate) struct Streams {
    pub(crate) input: ChildStdin,
    pub(crate) output: ChildStdout,
    pub(crate) errors: ChildStderr,
}

impl ChildTree {
    /// Starts a program with these variables and no others.
    pub(crate) fn start<'a>(
        program: &str,
        args: &[String],
        variables: impl Iterator<Item = (&'a str, &'a str)>,
        place: &Place,
    ) -> io::Result<(Self, Streams)> {
        let mut command = Command::new(program);
        command.args(args).env_clear();
        if let Some(tmp) = &place.tmp {
            command.envs(["TMPDIR", "TMP", "TEMP"].map(|name| (name, tmp)));
        }
        command.envs(variables);
        if let Some(cwd) = &place.cwd {
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
            below: Below::default(),
        };
        let streams = (
            tree.child.stdin.take(),
            tree.child.stdout.take(),
            tree.child.stderr.take(),
        );
        let (Some(input), Some(output), Some(errors)) = streams else {
            return Err(io::Error::other("a stream is missing"));
        };
        Ok((
            tree,
            Streams {
                input,
                output,
                errors,
            },
        ))
    }

    /// Notes what it has started: once it has ended by itself, nobody knows whose that was.
    pub(crate) fn note_tree(&mut self) {
        self.below.note(&self.child);
    }

    /// How it ended, when it does so within a moment. What it left in its group is gone then.
    #[cfg(feature = "acp")]
    pub(crate) async fn ending(&mut self) -> Option<std::process::ExitStatus> {
        timeout(LAST_WORDS, ended(&self.child)).await.ok()?;
        kill_tree(&mut self.child);
        self.child.try_wait().ok()?
    }

    /// Waits a little for a process whose input was closed; then it is killed, and in any case what it has left behind.
    pub(crate) async fn end(self) {
        let _late = timeout(LAST_WORDS, ended(&self.child)).await;
    }
}

impl Drop for ChildTree {
    fn drop(&mut self) {
        kill_tree(&mut self.child);
        self.below.kill();
    }
}

//! The program that a sandbox begins with, inside: it locks what is not to be written to, opens the way to the proxy where there is
//! one, and becomes the command.
//!
//! It is a program of the embedder's own, which calls [`run`] and nothing else. The sandbox has it mounted, so nothing needs to be
//! installed.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use super::write_lock;
use crate::sandbox::command::running::code_of;
use crate::sandbox::egress::relay;

/// Where it lies inside.
pub(super) const PROGRAM: &str = "/mnt/.sandbox/program";
/// Where the socket of the proxy lies inside.
pub(super) const PROXY: &str = "/mnt/.sandbox/proxy";
const WRITABLE: &str = "--writable";
const THROUGH: &str = "--proxy";
const COMMAND: &str = "--";

/// How the embedder's program is started so that it calls [`run`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InnerProgram {
    /// The file. Libraries that it is linked with have to lie in the system's folders.
    pub program: PathBuf,
    /// What tells it to; arguments of the sandbox' own follow.
    pub arguments: Vec<String>,
}

/// Why a command was not begun.
#[derive(Debug, thiserror::Error)]
pub enum InnerError {
    /// It was not a sandbox that started this.
    #[error("this is started by a sandbox, not by hand: no command follows")]
    NoCommand,
    /// What is not to be written to could not be locked.
    #[error("the folders could not be locked: {0}")]
    Lock(#[from] landlock::RulesetError),
    /// The command, or the way out, could not be started.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What the sandbox asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    writable: Vec<PathBuf>,
    proxy: Option<PathBuf>,
    command: Vec<OsString>,
}

/// Does what the sandbox asks for and gives the command's exit code, if it returns at all. `arguments` are those behind
/// [`InnerProgram::arguments`].
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> Result<ExitCode, InnerError> {
    let Asked {
        writable,
        proxy,
        command,
    } = read(arguments);
    let (program, arguments) = command.split_first().ok_or(InnerError::NoCommand)?;
    // A kernel without Landlock is told of by the probe; the mounts hold without it.
    let _held = write_lock::hold(writable)?;
    match proxy {
        None => Err(Command::new(program).args(arguments).exec().into()),
        Some(socket) => beside_relay(&socket, program, arguments),
    }
}

/// Runs the command and carries its connections meanwhile.
fn beside_relay(
    socket: &Path,
    program: &OsStr,
    arguments: &[OsString],
) -> Result<ExitCode, InnerError> {
    let listener = relay::listen()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let status: io::Result<ExitStatus> = runtime.block_on(async {
        let mut child = tokio::process::Command::new(program)
            .args(arguments)
            .spawn()?;
        tokio::select! {
            ended = child.wait() => ended,
            Err(error) = relay::run(listener, socket) => Err(error),
        }
    });
    Ok(ExitCode::from(u8::try_from(code_of(status?)).unwrap_or(1)))
}

fn read(arguments: impl IntoIterator<Item = OsString>) -> Asked {
    let mut asked = Asked::default();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some(WRITABLE) => asked.writable.extend(arguments.next().map(PathBuf::from)),
            Some(THROUGH) => asked.proxy = arguments.next().map(PathBuf::from),
            Some(COMMAND) => asked.command.extend(arguments.by_ref()),
            _ => return Asked::default(),
        }
    }
    asked
}

/// The arguments that say so to [`run`], behind the program's own. The command follows.
pub(super) fn arguments(writable: &[PathBuf], through_proxy: bool) -> Vec<OsString> {
    let locked = writable
        .iter()
        .flat_map(|path| [OsString::from(WRITABLE), path.into()]);
    let proxy = through_proxy
        .then(|| [THROUGH.into(), PROXY.into()])
        .into_iter()
        .flatten();
    locked.chain(proxy).chain([COMMAND.into()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_read_as_it_was_written() {
        let writable = vec![PathBuf::from("/tmp"), PathBuf::from("--proxy")];
        for through in [false, true] {
            let written = arguments(&writable, through)
                .into_iter()
                .chain(["/bin/bash".into(), "--".into()]);
            let proxy = through.then(|| PathBuf::from(PROXY));
            assert_eq!(
                read(written),
                Asked {
                    writable: writable.clone(),
                    proxy,
                    command: vec!["/bin/bash".into(), "--".into()]
                }
            );
        }
    }

    #[test]
    fn nothing_is_begun_without_a_command_or_with_anything_unknown() {
        for arguments in [
            &[][..],
            &["--"],
            &["--writable"],
            &["--writeable", "/", "--", "/bin/true"],
            &["/bin/true"],
        ] {
            assert!(
                matches!(
                    run(arguments.iter().map(OsString::from)),
                    Err(InnerError::NoCommand)
                ),
                "{arguments:?}"
            );
        }
    }
}

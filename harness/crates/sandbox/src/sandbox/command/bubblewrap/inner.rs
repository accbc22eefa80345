//! First program inside a sandbox: it restricts writes, starts the relay to the proxy if there is
//! one, and executes the command.
//!
//! It is the embedder's own program, in a mode that only calls [`run`]. The sandbox mounts the
//! program, so no installation is needed.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use super::write_lock;
use crate::sandbox::command::running::code_of;
use crate::sandbox::egress::relay;

/// Path of the program inside the sandbox.
pub(super) const PROGRAM: &str = "/mnt/.sandbox/program";
/// Path of the proxy's socket inside the sandbox.
pub(super) const PROXY: &str = "/mnt/.sandbox/proxy";
const WRITABLE_FLAG: &str = "--writable";
const PROXY_FLAG: &str = "--proxy";
const COMMAND_FLAG: &str = "--";

/// Command line of the embedder's program that makes it call [`run`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InnerProgram {
    /// The executable. Its shared libraries must lie in the system folders.
    pub program: PathBuf,
    /// Arguments that select this mode; the arguments of the sandbox follow.
    pub arguments: Vec<String>,
}

/// Reason why a command was not started.
#[derive(Debug, thiserror::Error)]
pub enum InnerError {
    /// The program was not started by a sandbox.
    #[error("no command given: only a sandbox starts this program")]
    NoCommand,
    /// The write lock could not be set.
    #[error("cannot restrict writes: {0}")]
    Lock(#[from] landlock::RulesetError),
    /// The command or the relay could not be started.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Parsed arguments of the sandbox.
#[derive(Debug, Default, PartialEq, Eq)]
struct InnerRequest {
    writable: Vec<PathBuf>,
    proxy: Option<PathBuf>,
    command: Vec<OsString>,
}

/// Executes the request of the sandbox and returns the command's exit code if it returns at all.
/// `arguments` are those after [`InnerProgram::arguments`].
///
/// # Errors
/// See [`InnerError`].
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> Result<ExitCode, InnerError> {
    let InnerRequest {
        writable,
        proxy,
        command,
    } = parse(arguments);
    let (program, arguments) = command.split_first().ok_or(InnerError::NoCommand)?;
    // The probe reports a kernel without Landlock; the mounts protect the system without it.
    let _enforced = write_lock::restrict_writes(writable)?;
    match proxy {
        None => Err(Command::new(program).args(arguments).exec().into()),
        Some(socket) => run_with_relay(&socket, program, arguments),
    }
}

/// Runs the command and relays its connections concurrently.
fn run_with_relay(
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

fn parse(arguments: impl IntoIterator<Item = OsString>) -> InnerRequest {
    let mut request = InnerRequest::default();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some(WRITABLE_FLAG) => request.writable.extend(arguments.next().map(PathBuf::from)),
            Some(PROXY_FLAG) => request.proxy = arguments.next().map(PathBuf::from),
            Some(COMMAND_FLAG) => request.command.extend(arguments.by_ref()),
            _ => return InnerRequest::default(),
        }
    }
    request
}

/// Returns the arguments for [`run`], after the program's own. The command follows.
pub(super) fn arguments(writable: &[PathBuf], through_proxy: bool) -> Vec<OsString> {
    let locked = writable
        .iter()
        .flat_map(|path| [OsString::from(WRITABLE_FLAG), path.into()]);
    let proxy = through_proxy
        .then(|| [PROXY_FLAG.into(), PROXY.into()])
        .into_iter()
        .flatten();
    locked.chain(proxy).chain([COMMAND_FLAG.into()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_round_trip() {
        let writable = vec![PathBuf::from("/tmp"), PathBuf::from("--proxy")];
        for through in [false, true] {
            let written = arguments(&writable, through)
                .into_iter()
                .chain(["/bin/bash".into(), "--".into()]);
            let proxy = through.then(|| PathBuf::from(PROXY));
            assert_eq!(
                parse(written),
                InnerRequest {
                    writable: writable.clone(),
                    proxy,
                    command: vec!["/bin/bash".into(), "--".into()]
                }
            );
        }
    }

    #[test]
    fn run_rejects_missing_command_and_unknown_flags() {
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

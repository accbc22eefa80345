//! The process's standard streams, for the protocol alone.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use rustix::stdio::{dup2_stdin, dup2_stdout};

/// Gives standard input and standard output, and takes both from all others: who reads there finds nothing any more, and what is printed,
/// also by a program that is started, goes to standard error.
///
/// # Errors
/// When the system has no more files for this process.
pub(super) fn take() -> io::Result<(tokio::fs::File, tokio::fs::File)> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    dup2_stdin(File::open("/dev/null")?)?;
    dup2_stdout(io::stderr())?;
    Ok((File::from(input).into(), File::from(output).into()))
}

//! Reserves the standard streams of the process for the protocol.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use rustix::stdio::{dup2_stdin, dup2_stdout};

/// Returns standard input and standard output, and replaces both for the process and its children:
/// reads return the end of the stream, and output goes to standard error.
///
/// # Errors
/// The process has no free file descriptors.
pub fn take_standard_streams() -> io::Result<(tokio::fs::File, tokio::fs::File)> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    dup2_stdin(File::open("/dev/null")?)?;
    dup2_stdout(io::stderr())?;
    Ok((File::from(input).into(), File::from(output).into()))
}

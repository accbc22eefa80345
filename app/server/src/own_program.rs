//! This program, where it is the `deerflow` binary: it starts itself once more for work that is done apart from it.
//!
//! A program that only uses this crate does not know what `deerflow` is told then, so it is never started like that.

use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The first argument where a document is to be read.
pub const CONVERT_DOCUMENT: &str = "convert-document";
/// The first argument where a sandbox starts it, inside: see [`inner::run`](harness::sandbox::command::bubblewrap::inner::run).
pub const SANDBOX_INNER: &str = "sandbox-inner";

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Says that the `main` of this program obeys these arguments. Fails where the system does not tell where it lies.
pub fn declare() -> io::Result<()> {
    let program = std::env::current_exe()?;
    PROGRAM.get_or_init(|| program);
    Ok(())
}

/// Where it lies, if it was declared and is known.
pub(crate) fn path() -> Option<PathBuf> {
    PROGRAM.get().cloned()
}

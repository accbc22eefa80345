//! Path of the `deerflow` binary, which starts itself again as a worker for isolated work.
//!
//! In a program that only uses this crate the path is unknown, so such a program is never started
//! as a worker.

use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;

/// First argument of a document conversion worker.
pub const CONVERT_DOCUMENT: &str = "convert-document";
/// First argument inside a sandbox: see
/// [`inner::run`](harness::sandbox::command::bubblewrap::inner::run).
pub const SANDBOX_INNER: &str = "sandbox-inner";

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Declares that the `main` of this program handles the arguments above.
///
/// # Errors
/// The system cannot determine the path of the program.
pub fn declare() -> io::Result<()> {
    let program = std::env::current_exe()?;
    PROGRAM.get_or_init(|| program);
    Ok(())
}

/// Returns the path of this program, if it was declared.
pub(crate) fn path() -> Option<PathBuf> {
    PROGRAM.get().cloned()
}

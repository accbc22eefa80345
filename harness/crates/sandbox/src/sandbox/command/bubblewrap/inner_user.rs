//! User, home and search path of commands inside the sandbox.

/// Working directory and home of a command.
pub(super) const WORKSPACE: &str = "/mnt/user-data/workspace";
/// User id and group id inside the sandbox.
pub(super) const INNER_ID: &str = "1000";
/// `PATH` inside the sandbox.
pub(super) const INNER_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

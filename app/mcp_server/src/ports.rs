//! Ports of the MCP server: the parts of an installation that it uses.

use std::sync::Arc;

use deerflow_domain::threads::ThreadStore;
use harness::client::ChatOptions;
use harness::ids::{IdSource, ThreadId};
use harness::runtime::runs::RunsFacade;
use harness::runtime::tasks::Tasks;
use harness::sandbox::FileHome;

/// Function that returns the shell command with which a user approves the pending calls of a
/// thread, with the options of the original question.
pub type ApprovalCommand = fn(&ThreadId, &ChatOptions) -> String;

/// Services and data of an installation that the server uses, all for the installation's default
/// user.
#[derive(Debug, Clone)]
pub struct ServerPorts {
    /// Operations on runs.
    pub runs: Arc<RunsFacade>,
    /// Records of threads.
    pub threads: Arc<dyn ThreadStore>,
    /// Files of threads.
    pub files: FileHome,
    /// Source of ids for new threads.
    pub ids: Arc<dyn IdSource>,
    /// Tasks of questions.
    pub tasks: Tasks,
    /// Returns the shell command that approves pending calls.
    pub approval_command: ApprovalCommand,
}

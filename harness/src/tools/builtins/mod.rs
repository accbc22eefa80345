//! The tools that come with the framework, one per file.

mod ask_clarification;
mod bash;
mod glob;
mod grep;
mod ls;
mod present_files;
mod read_file;
mod str_replace;
mod view_image;
mod write_file;
mod write_todos;

pub use ask_clarification::{ASK_CLARIFICATION, AskClarification, AskClarificationArgs, ClarificationType};
pub use bash::Bash;
pub use glob::Glob;
pub use grep::Grep;
pub use ls::Ls;
pub use present_files::PresentFiles;
pub use read_file::ReadFile;
pub use str_replace::StrReplace;
pub use view_image::{MAX_IMAGE_BYTES, VIEW_IMAGE, ViewImage};
pub use write_file::WriteFile;
pub use write_todos::{TODOS, Todo, TodoStatus, WRITE_TODOS, WriteTodos, WriteTodosArgs};

use super::{ToolContext, ToolError, ToolOutput};
use crate::sandbox::{FileError, FileHome, PathError, ThreadFiles, VirtualPath, render};

/// The files of the thread that a call belongs to.
fn files_of(home: &FileHome, ctx: &ToolContext) -> ThreadFiles {
    home.thread(&ctx.run.actor.user_id, &ctx.run.thread_id)
}

/// Reads the path a model wrote; one that is refused is the model's to mend.
fn path(raw: &str) -> Result<VirtualPath, ToolError> {
    VirtualPath::parse(raw).map_err(|error: PathError| ToolError::for_model(render::error(&error)))
}

/// The text of a failed file operation, for the model.
fn failed(error: FileError) -> ToolError {
    ToolError::for_model(render::error(&error))
}

/// The text of a refused argument, for the model.
fn refused(problem: String) -> ToolError {
    ToolError::for_model(render::error(&problem))
}

/// The result of an operation with nothing to tell.
fn done() -> ToolOutput {
    ToolOutput::text(render::DONE)
}

#[cfg(test)]
#[path = "builtins_tests.rs"]
mod tests;

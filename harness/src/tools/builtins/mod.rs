//! The tools that come with the framework, one per file.

mod ask_clarification;
mod bash;
mod describe_skill;
mod glob;
mod grep;
mod list_uploaded_files;
mod ls;
mod present_files;
mod read_file;
mod str_replace;
mod tool_search;
mod view_image;
mod write_file;
mod write_todos;

pub use ask_clarification::{
    ASK_CLARIFICATION, AskClarification, AskClarificationArgs, ClarificationType,
};
pub use bash::{Bash, BashArgs};
pub use describe_skill::{DESCRIBE_SKILL, DescribeSkill, DescribeSkillArgs};
pub use glob::{Glob, GlobArgs};
pub use grep::{Grep, GrepArgs};
pub use list_uploaded_files::{ListUploadedFiles, ListUploadedFilesArgs, Outlines};
pub use ls::{Ls, LsArgs};
pub use present_files::{PresentFiles, PresentFilesArgs};
pub use read_file::{ReadFile, ReadFileArgs};
pub use str_replace::{StrReplace, StrReplaceArgs};
pub use tool_search::{TOOL_SEARCH, ToolSearch, ToolSearchArgs};
pub use view_image::{MAX_IMAGE_BYTES, VIEW_IMAGE, ViewImage, ViewImageArgs, type_of_content};
pub use write_file::{WriteFile, WriteFileArgs};
pub use write_todos::{TODOS, Todo, TodoStatus, WRITE_TODOS, WriteTodos, WriteTodosArgs};

use super::{ToolContext, ToolError, ToolOutput};
use crate::sandbox::{FileError, FileHome, PathError, ThreadFiles, VirtualPath, render};

/// The files of the thread that a call belongs to.
fn files_of(home: &FileHome, ctx: &ToolContext) -> ThreadFiles {
    home.thread(&ctx.run.actor.user_id, &ctx.run.thread_id)
}

/// Reads the path of what a model wants to change; one that is refused is the model's to mend.
fn writable(home: &FileHome, raw: &str) -> Result<VirtualPath, ToolError> {
    home.writable(raw)
        .map_err(|error: PathError| ToolError::for_model(render::error(&error)))
}

/// As [`writable`], where skills will do too.
fn readable(home: &FileHome, raw: &str) -> Result<VirtualPath, ToolError> {
    home.readable(raw)
        .map_err(|error: PathError| ToolError::for_model(render::error(&error)))
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

//! Built-in tools, one per file.

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
    ASK_CLARIFICATION, AskClarification, AskClarificationArgs, ClarificationField,
    ClarificationFieldType, ClarificationType,
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

/// Returns the files of the thread that a call belongs to.
fn files_of(home: &FileHome, ctx: &ToolContext) -> ThreadFiles {
    home.thread(&ctx.run.actor.user_id, &ctx.run.thread_id)
}

/// Parses a path that the model wants to write to. An invalid path is an error for the model.
fn writable(home: &FileHome, raw: &str) -> Result<VirtualPath, ToolError> {
    home.writable(raw)
        .map_err(|error: PathError| ToolError::for_model(render::error(&error)))
}

/// Parses a path that the model wants to read. Accepts also paths of skills, unlike [`writable`].
fn readable(home: &FileHome, raw: &str) -> Result<VirtualPath, ToolError> {
    home.readable(raw)
        .map_err(|error: PathError| ToolError::for_model(render::error(&error)))
}

/// Converts a failed file operation to an error for the model.
fn failed(error: FileError) -> ToolError {
    ToolError::for_model(render::error(&error))
}

/// Converts an invalid argument to an error for the model.
fn refused(problem: String) -> ToolError {
    ToolError::for_model(render::error(&problem))
}

/// Result of a successful operation without output.
fn done() -> ToolOutput {
    ToolOutput::text(render::DONE)
}

#[cfg(test)]
#[path = "builtins_tests.rs"]
mod tests;

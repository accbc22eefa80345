//! `read_file`: reads a text file or a range of its lines.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{failed, files_of, readable};
use crate::sandbox::{FileHome, LineRange, render};
use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};

/// Reads a text file.
#[derive(Debug, Clone)]
pub struct ReadFile {
    /// File storage of all threads.
    pub home: FileHome,
    /// Maximum length of a result in characters; 0 for no limit.
    pub max_chars: usize,
}

/// Arguments of `read_file`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ReadFileArgs {
    /// Why you read it, in a few words; shown to the user.
    #[serde(default, rename = "description")]
    pub _description: String,
    /// The file, as an absolute path under /mnt/user-data/workspace, /mnt/user-data/uploads, /mnt/user-data/outputs or /mnt/skills.
    pub path: String,
    /// First line to read, counting from 1; leave out to begin at the start.
    #[serde(default)]
    pub start_line: Option<i64>,
    /// Last line to read, included; leave out to read to the end.
    #[serde(default)]
    pub end_line: Option<i64>,
}

impl Tool for ReadFile {
    type Args = ReadFileArgs;

    fn name(&self) -> &str {
        "read_file"
    }

    fn description(&self) -> &str {
        "Read a UTF-8 text file, whole or a range of lines. Long files are cut and the result says how to read on; ask for a range \
         when you know where to look. Not for images or other binary files."
    }

    fn effect(&self, _args: &ReadFileArgs) -> Effect {
        Effect::Pure
    }

    async fn call(&self, args: ReadFileArgs, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let path = readable(&self.home, &args.path)?;
        let range = LineRange {
            start: args.start_line,
            end: args.end_line,
        };
        let read = files_of(&self.home, ctx)
            .read_text(&path, range)
            .await
            .map_err(failed)?;
        Ok(ToolOutput::text(render::file_text(&read, self.max_chars)))
    }
}

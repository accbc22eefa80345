//! `write_file`: writes a text file or appends to it.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{done, failed, files_of, writable};
use crate::sandbox::{FileHome, WriteMode};
use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};

/// Writes a text file.
#[derive(Debug, Clone)]
pub struct WriteFile {
    /// File storage of all threads.
    pub home: FileHome,
}

/// Arguments of `write_file`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct WriteFileArgs {
    /// Why you write it, in a few words; shown to the user.
    #[serde(default, rename = "description")]
    pub _description: String,
    /// The file, as an absolute path under /mnt/user-data/workspace, /mnt/user-data/uploads or /mnt/user-data/outputs; directories
    /// on the way are made.
    pub path: String,
    /// The text.
    pub content: String,
    /// Add to the end instead of replacing the file.
    #[serde(default)]
    pub append: bool,
}

impl Tool for WriteFile {
    type Args = WriteFileArgs;

    fn name(&self) -> &str {
        "write_file"
    }

    fn description(&self) -> &str {
        "Create a text file or replace its content; with append, add to its end. Work in /mnt/user-data/workspace and put what the \
         user shall receive into /mnt/user-data/outputs. Write long texts in pieces of at most 80 KB: the first replaces, the rest \
         append. To change part of a file use str_replace."
    }

    // Writing the same content again changes nothing; a repeated append would write it twice.
    fn effect(&self, args: &WriteFileArgs) -> Effect {
        if args.append {
            Effect::Unsafe
        } else {
            Effect::Keyed
        }
    }

    async fn call(&self, args: WriteFileArgs, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let path = writable(&self.home, &args.path)?;
        let mode = if args.append {
            WriteMode::Append
        } else {
            WriteMode::Replace
        };
        files_of(&self.home, ctx)
            .write_text(&path, args.content, mode)
            .await
            .map_err(failed)?;
        Ok(done())
    }
}

//! `str_replace`: replaces text in a file.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{done, failed, files_of, writable};
use crate::sandbox::{FileHome, Occurrences};
use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};

/// Replaces text in a file.
#[derive(Debug, Clone)]
pub struct StrReplace {
    /// File storage of all threads.
    pub home: FileHome,
}

/// Arguments of `str_replace`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct StrReplaceArgs {
    /// Why you change it, in a few words; shown to the user.
    #[serde(default, rename = "description")]
    pub _description: String,
    /// The file, as an absolute path under /mnt/user-data/workspace, /mnt/user-data/uploads or /mnt/user-data/outputs.
    pub path: String,
    /// The text to replace, exactly as it stands in the file, with enough of its surroundings to be unique.
    pub old_str: String,
    /// What takes its place.
    pub new_str: String,
    /// Replace every occurrence instead of the first.
    #[serde(default)]
    pub replace_all: bool,
}

impl Tool for StrReplace {
    type Args = StrReplaceArgs;

    fn name(&self) -> &str {
        "str_replace"
    }

    fn description(&self) -> &str {
        "Replace a text in a file with another. The text must occur exactly as given, spaces and line breaks included; only the \
         first occurrence changes unless replace_all is set. Prefer it to writing a long file again."
    }

    // A repeated call replaces the next occurrence, or part of the new text if that contains the
    // old one.
    fn effect(&self, _args: &StrReplaceArgs) -> Effect {
        Effect::Unsafe
    }

    async fn call(&self, args: StrReplaceArgs, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let path = writable(&self.home, &args.path)?;
        let is_empty = args.old_str.is_empty();
        let which = if args.replace_all {
            Occurrences::All
        } else {
            Occurrences::First
        };
        let changed = files_of(&self.home, ctx)
            .replace(&path, args.old_str, args.new_str, which)
            .await
            .map_err(failed)?;
        if changed == 0 && !is_empty {
            return Err(ToolError::for_model(format!(
                "Error: the text to replace does not occur in {path}. Read the file again and give the text exactly as it is in the file."
            )));
        }
        Ok(done())
    }
}

//! `ls`: lists a directory.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{failed, files_of, readable};
use crate::sandbox::{FileHome, render};
use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};

/// Depth of a listing, in levels.
const DEPTH: usize = 2;

/// Lists a directory two levels deep.
#[derive(Debug, Clone)]
pub struct Ls {
    /// File storage of all threads.
    pub home: FileHome,
    /// Maximum length of a result in characters; 0 for no limit.
    pub max_chars: usize,
}

/// Arguments of `ls`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct LsArgs {
    /// Why you look, in a few words; shown to the user.
    #[serde(default, rename = "description")]
    pub _description: String,
    /// The directory, as an absolute path under /mnt/user-data/workspace, /mnt/user-data/uploads, /mnt/user-data/outputs or /mnt/skills.
    pub path: String,
}

impl Tool for Ls {
    type Args = LsArgs;

    fn name(&self) -> &str {
        "ls"
    }

    fn description(&self) -> &str {
        "List a directory, two levels deep, one absolute path per line; directories end in a slash. Use it to find out what exists \
         before reading or writing. Version-control folders, caches and build results are left out."
    }

    fn effect(&self, _args: &LsArgs) -> Effect {
        Effect::Pure
    }

    async fn call(&self, args: LsArgs, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let path = readable(&self.home, &args.path)?;
        let listing = files_of(&self.home, ctx)
            .list(&path, DEPTH)
            .await
            .map_err(failed)?;
        Ok(ToolOutput::text(render::listing(&listing, self.max_chars)))
    }
}

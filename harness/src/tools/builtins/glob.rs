//! `glob`: finds files whose paths match a pattern.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{failed, files_of, readable, refused};
use crate::sandbox::{FileHome, NamePattern, SearchResults, render};
use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};

/// Maximum number of results that a call can request.
const MAX_RESULTS: usize = 1000;

/// Finds files by name.
#[derive(Debug, Clone)]
pub struct Glob {
    /// File storage of all threads.
    pub home: FileHome,
    /// Configured maximum number of results; without it, the limit of the tool applies.
    pub max_results: Option<usize>,
}

/// Arguments of `glob`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct GlobArgs {
    /// Why you look, in a few words; shown to the user.
    #[serde(default, rename = "description")]
    pub _description: String,
    /// The pattern, read from `path` on: `*` and `?` stay within a name, `**` goes through directories, as in `**/*.md`.
    pub pattern: String,
    /// The directory to look in, as an absolute path under /mnt/user-data/workspace, /mnt/user-data/uploads, /mnt/user-data/outputs or /mnt/skills.
    pub path: String,
    /// Whether directories count too.
    #[serde(default)]
    pub include_dirs: bool,
    /// How many paths to show, 1000 at most.
    #[serde(default = "default_results")]
    pub max_results: usize,
}

fn default_results() -> usize {
    200
}

impl Tool for Glob {
    type Args = GlobArgs;

    fn name(&self) -> &str {
        "glob"
    }

    fn description(&self) -> &str {
        "Find files whose path matches a pattern. Use it when you know what a file is called and not where it is; to see what a directory \
         holds use ls, to search in files use grep. Version-control folders, caches and build results are left out."
    }

    fn effect(&self, _args: &GlobArgs) -> Effect {
        Effect::Pure
    }

    async fn call(&self, args: GlobArgs, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let path = readable(&self.home, &args.path)?;
        let pattern = NamePattern::parse(&args.pattern).map_err(refused)?;
        let limit = args
            .max_results
            .min(self.max_results.unwrap_or(MAX_RESULTS))
            .clamp(1, MAX_RESULTS);
        let SearchResults { rows, incomplete } = files_of(&self.home, ctx)
            .glob(&path, pattern, args.include_dirs, limit)
            .await
            .map_err(failed)?;
        let rows = rows
            .into_iter()
            .enumerate()
            .map(|(position, row)| format!("{}. {row}", position + 1))
            .collect();
        Ok(ToolOutput::text(render::search_results(
            &SearchResults { rows, incomplete },
            "paths",
            &path,
        )))
    }
}

//! `grep`: finds lines of files that match a pattern.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{failed, files_of, readable, refused};
use crate::sandbox::{FileHome, LineQuery, NamePattern, render};
use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};

/// Maximum number of results that a call can request.
const MAX_RESULTS: usize = 500;

/// Finds lines in files.
#[derive(Debug, Clone)]
pub struct Grep {
    /// File storage of all threads.
    pub home: FileHome,
    /// Configured maximum number of results; without it, the limit of the tool applies.
    pub max_results: Option<usize>,
}

/// Arguments of `grep`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct GrepArgs {
    /// Why you search, in a few words; shown to the user.
    #[serde(default, rename = "description")]
    pub _description: String,
    /// The regular expression that a line must match, 1024 bytes at most.
    pub pattern: String,
    /// The file or directory, as an absolute path under /mnt/user-data/workspace, /mnt/user-data/uploads, /mnt/user-data/outputs or /mnt/skills.
    pub path: String,
    /// Search only files that match this: a name such as `*.py`, or a path from the directory on such as `src/**/*.py`.
    #[serde(default)]
    pub glob: Option<String>,
    /// Take the pattern as plain text.
    #[serde(default)]
    pub literal: bool,
    /// Tell capital letters from small ones.
    #[serde(default)]
    pub case_sensitive: bool,
    /// How many lines to show, 500 at most.
    #[serde(default = "default_results")]
    pub max_results: usize,
}

fn default_results() -> usize {
    100
}

impl Tool for Grep {
    type Args = GrepArgs;

    fn name(&self) -> &str {
        "grep"
    }

    fn description(&self) -> &str {
        "Search text files for lines that match, shown as path:line: text. Use it to find where something is said before you read; binary \
         files, files over 1 MB, very long lines, version-control folders, caches and build results are left out."
    }

    fn effect(&self, _args: &GrepArgs) -> Effect {
        Effect::Pure
    }

    async fn call(&self, args: GrepArgs, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let path = readable(&self.home, &args.path)?;
        let GrepArgs {
            pattern,
            glob,
            literal,
            case_sensitive,
            ..
        } = args;
        let read = move || {
            let files = glob.as_deref().map(NamePattern::parse).transpose()?;
            LineQuery::parse(&pattern, literal, case_sensitive, files)
        };
        let files = files_of(&self.home, ctx);
        let query = files
            .run_limited(move || Ok(read()))
            .await
            .map_err(|fault| refused(fault.to_string()))?
            .map_err(refused)?;
        let limit = args
            .max_results
            .min(self.max_results.unwrap_or(MAX_RESULTS))
            .clamp(1, MAX_RESULTS);
        let found = files.grep(&path, query, limit).await.map_err(failed)?;
        Ok(ToolOutput::text(render::search_results(
            &found, "matches", &path,
        )))
    }
}

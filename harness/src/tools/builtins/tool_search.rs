//! `tool_search`: searches deferred tools and loads the matches.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::tools::deferred::{DeferredTools, schema_json};
use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};

/// Name of the tool.
pub const TOOL_SEARCH: &str = "tool_search";

/// Searches a catalog and makes the matching tools callable.
#[derive(Debug, Clone)]
pub struct ToolSearch {
    /// Catalog to search.
    pub catalog: Arc<DeferredTools>,
}

/// Arguments of `tool_search`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ToolSearchArgs {
    /// `select:name1,name2` for tools whose names you know; `+word more words` for names that contain the word; or a regular
    /// expression over names and descriptions.
    pub query: String,
}

impl Tool for ToolSearch {
    type Args = ToolSearchArgs;

    fn name(&self) -> &str {
        TOOL_SEARCH
    }

    fn description(&self) -> &str {
        "Find tools that are listed as available but not loaded, and load them. The result says how each is called; from your next \
         answer on you can call them like any other. Use it before you call a listed tool, and when nothing loaded fits the work. A \
         search shows five tools at most, `select:` shows all that it names."
    }

    fn effect(&self, _args: &ToolSearchArgs) -> Effect {
        Effect::Pure
    }

    async fn call(
        &self,
        args: ToolSearchArgs,
        _ctx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let catalog = self.catalog.clone();
        // The model wrote the pattern, which may be slow to match.
        let searching = tokio::task::spawn_blocking(move || {
            catalog
                .search(&args.query)
                .into_iter()
                .cloned()
                .collect::<Vec<_>>()
        });
        let found = searching
            .await
            .map_err(|error| ToolError::for_model(format!("Error: the search failed: {error}")))?;
        if found.is_empty() {
            return Ok(ToolOutput::text(
                "No tool matches. Try another word, or the name of a listed tool with select:.",
            ));
        }
        let text = found.iter().map(schema_json).collect::<Value>().to_string();
        Ok(ToolOutput {
            update: self.catalog.promotion(&found),
            ..ToolOutput::text(text)
        })
    }
}

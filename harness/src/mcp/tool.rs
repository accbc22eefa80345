//! Adapts a server's tool to the tool interface of agents.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use serde_json::{Map, Value};

use super::catalog::ListedTool;
use super::result::output;
use super::server::Server;
use crate::models::ToolSchema;
use crate::tools::{DynTool, Effect, ToolContext, ToolError, ToolOutput};

/// Tool of a server.
pub(super) struct McpTool {
    server: Arc<Server>,
    listed: ListedTool,
}

impl McpTool {
    pub(super) fn erased(server: Arc<Server>, listed: ListedTool) -> Arc<dyn DynTool> {
        Arc::new(Self { server, listed })
    }
}

impl DynTool for McpTool {
    fn schema(&self) -> &ToolSchema {
        &self.listed.schema
    }

    fn effect(&self, _args: &Map<String, Value>) -> Effect {
        self.listed.effect
    }

    fn return_direct(&self) -> bool {
        false
    }

    fn is_foreign(&self) -> bool {
        true
    }

    fn server(&self) -> Option<&str> {
        Some(&self.server.spec.name)
    }

    fn call<'a>(
        &'a self,
        args: Map<String, Value>,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let mask = self.server.mask(ctx);
            match self.server.call(&self.listed.original, args, ctx).await {
                Ok(result) => output(result, mask),
                Err(error) => {
                    tracing::warn!(server = %self.server.spec.name, tool = %self.listed.original, %error, run_id = %ctx.run.run_id, "mcp tool call failed");
                    let text = mask(&error.to_string());
                    Err(ToolError::for_model(format!("Error: the MCP server {} could not do this: {text}.", self.server.spec.name)))
                }
            }
        }
        .boxed()
    }
}

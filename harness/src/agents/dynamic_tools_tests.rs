//! Tests of tools that are deferred because a request has no room for them.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::*;
use crate::models::ToolSchema;
use crate::tools::{Effect, ToolContext, ToolError, ToolOutput};

struct Described(ToolSchema);

impl DynTool for Described {
    fn schema(&self) -> &ToolSchema {
        &self.0
    }

    fn effect(&self, _args: &Map<String, Value>) -> Effect {
        Effect::Pure
    }

    fn return_direct(&self) -> bool {
        false
    }

    fn call<'a>(
        &'a self,
        _args: Map<String, Value>,
        _ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async { Ok("".into()) }.boxed()
    }
}

fn with_dynamic(count: usize, bytes: usize, enabled: bool) -> ToolRegistry {
    let tool = |n: usize| {
        let schema = ToolSchema {
            name: format!("t{n}"),
            description: "x".repeat(bytes),
            parameters: json!({"type": "object"}),
        };
        Arc::new(Described(schema)) as Arc<dyn DynTool>
    };
    let search: ToolSearchConfig = serde_json::from_value(json!({"enabled": enabled})).unwrap();
    let mut tools = ToolRegistry::new();
    add_dynamic(
        &mut tools,
        &ToolSet::new(1, (0..count).map(tool).collect()),
        &search,
        |name| name != "t0",
    );
    tools
}

#[test]
fn tools_over_request_limit_are_deferred() {
    let hidden = |tools: &ToolRegistry| {
        tools
            .deferred()
            .map_or(0, |deferred| deferred.names().count())
    };
    let few = with_dynamic(10, 10, false);
    assert_eq!(
        (
            few.names().count(),
            hidden(&few),
            few.get("tool_search").is_some()
        ),
        (9, 0, false)
    );
    let many = with_dynamic(MAX_VISIBLE + 51, 10, false);
    assert_eq!(
        (
            many.names().count(),
            hidden(&many),
            many.get("tool_search").is_some()
        ),
        (MAX_VISIBLE + 51, 50, true)
    );
    let large = with_dynamic(11, MAX_SCHEMA_BYTES / 4, false);
    assert_eq!(hidden(&large), 7, "three of them fit");
    assert_eq!(
        hidden(&with_dynamic(10, 10, true)),
        9,
        "the configuration defers all of them"
    );
}

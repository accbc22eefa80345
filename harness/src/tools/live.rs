//! Tools that come and go, as an agent gets them: beside its own, and only so many at once that they fit into a request.

use std::sync::Arc;

use super::builtins::ToolSearch;
use super::deferred::{DeferredTools, shown};
use super::erased::{DynTool, erase};
use super::{ToolRegistry, ToolSet};
use crate::config::ToolSearchConfig;

/// Such tools that a model sees without having looked for them.
const MOST_SEEN: usize = 100;
/// What a model reads of them at most, in bytes.
const MOST_BYTES: usize = 256 * 1024;

/// Adds those of `live` that the agent may use: last, so that none takes the name of another. A model has to look for all of them
/// where the configuration says so, and else for those that are too many.
pub(crate) fn add_live(
    tools: &mut ToolRegistry,
    live: &ToolSet,
    search: &ToolSearchConfig,
    may_use: impl Fn(&str) -> bool,
) {
    let is_new = |tool: &&Arc<dyn DynTool>| {
        tools.get(&tool.schema().name).is_none() && may_use(&tool.schema().name)
    };
    let added: Vec<_> = live.tools().iter().filter(is_new).cloned().collect();
    let seen = if search.enabled { 0 } else { in_view(&added) };
    if seen < added.len() {
        let catalog = Arc::new(DeferredTools::new(
            added[seen..].iter().map(|tool| tool.schema().clone()),
        ));
        tools.add(erase(ToolSearch {
            catalog: catalog.clone(),
        }));
        tools.defer(catalog);
    }
    tools.extend(added);
}

/// How many of them, from the first on, fit into every request.
fn in_view(tools: &[Arc<dyn DynTool>]) -> usize {
    let mut bytes = 0;
    let fits = |tool: &&Arc<dyn DynTool>| {
        bytes += shown(tool.schema()).to_string().len();
        bytes <= MOST_BYTES
    };
    tools.iter().take(MOST_SEEN).take_while(fits).count()
}

#[cfg(test)]
mod tests {
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

    fn with_live(count: usize, bytes: usize, enabled: bool) -> ToolRegistry {
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
        add_live(
            &mut tools,
            &ToolSet::new(1, (0..count).map(tool).collect()),
            &search,
            |name| name != "t0",
        );
        tools
    }

    #[test]
    fn tools_beyond_what_fits_into_a_request_are_looked_for() {
        let hidden = |tools: &ToolRegistry| {
            tools
                .deferred()
                .map_or(0, |deferred| deferred.names().count())
        };
        let few = with_live(10, 10, false);
        assert_eq!(
            (
                few.names().count(),
                hidden(&few),
                few.get("tool_search").is_some()
            ),
            (9, 0, false)
        );
        let many = with_live(MOST_SEEN + 51, 10, false);
        assert_eq!(
            (
                many.names().count(),
                hidden(&many),
                many.get("tool_search").is_some()
            ),
            (MOST_SEEN + 51, 50, true)
        );
        let large = with_live(11, MOST_BYTES / 4, false);
        assert_eq!(hidden(&large), 7, "three of them fit");
        assert_eq!(
            hidden(&with_live(10, 10, true)),
            9,
            "the configuration has all of them looked for"
        );
    }
}

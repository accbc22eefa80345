//! Tools that only append to a log that the agent cannot reach.

use std::sync::Arc;

use async_trait::async_trait;
use deerflow_harness::tools::{
    Effect, Tool, ToolContext, ToolError, ToolOutput, ToolSet, ToolSource, erase,
};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;

/// Recorded effects: the tool and its argument.
pub(super) type EffectLog = Arc<Mutex<Vec<(&'static str, String)>>>;

/// Tool with an effect.
pub(super) struct EffectTool {
    pub(super) name: &'static str,
    pub(super) effect_log: EffectLog,
}

/// Arguments of such a tool.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct EffectArgs {
    what: String,
}

impl Tool for EffectTool {
    type Args = EffectArgs;

    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &str {
        "Does it."
    }

    fn effect(&self, _args: &EffectArgs) -> Effect {
        Effect::Unsafe
    }

    async fn call(&self, args: EffectArgs, _ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.effect_log.lock().push((self.name, args.what));
        Ok("done".into())
    }
}

/// Deferred tools: they must be searched for before they can be called.
#[derive(Debug)]
pub(super) struct Remote(pub(super) EffectLog);

#[async_trait]
impl ToolSource for Remote {
    async fn tools(&self) -> Arc<ToolSet> {
        let deed = |name| {
            erase(EffectTool {
                name,
                effect_log: self.0.clone(),
            })
        };
        Arc::new(ToolSet::new(
            1,
            vec![deed("remote_look"), deed("remote_wipe")],
        ))
    }
}

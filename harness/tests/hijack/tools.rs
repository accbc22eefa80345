//! Tools that do nothing but write into a book that the agent cannot reach.

use std::sync::Arc;

use async_trait::async_trait;
use deerflow_harness::tools::{
    Effect, Tool, ToolContext, ToolError, ToolOutput, ToolSet, ToolSource, erase,
};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;

/// What was done: the tool, and what with.
pub(super) type Book = Arc<Mutex<Vec<(&'static str, String)>>>;

/// A tool with an effect.
pub(super) struct Deed {
    pub(super) name: &'static str,
    pub(super) book: Book,
}

/// What it is done with.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct DeedArgs {
    what: String,
}

impl Tool for Deed {
    type Args = DeedArgs;

    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &str {
        "Does it."
    }

    fn effect(&self, _args: &DeedArgs) -> Effect {
        Effect::Unsafe
    }

    async fn call(&self, args: DeedArgs, _ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.book.lock().push((self.name, args.what));
        Ok("done".into())
    }
}

/// Tools that have to be looked for before they are called.
#[derive(Debug)]
pub(super) struct Remote(pub(super) Book);

#[async_trait]
impl ToolSource for Remote {
    async fn tools(&self) -> Arc<ToolSet> {
        let deed = |name| {
            erase(Deed {
                name,
                book: self.0.clone(),
            })
        };
        Arc::new(ToolSet::new(
            1,
            vec![deed("remote_look"), deed("remote_wipe")],
        ))
    }
}

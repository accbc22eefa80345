//! Tool that is implemented by a function.

use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};

/// Tool that calls a synchronous function with the arguments and the context.
pub(super) struct FnTool<A, F> {
    name: &'static str,
    description: &'static str,
    effect: Effect,
    call: F,
    args: PhantomData<fn(A)>,
}

impl<A, F> FnTool<A, F>
where
    F: Fn(A, &ToolContext) -> Result<ToolOutput, ToolError>,
{
    /// Creates a tool that is safe to repeat.
    pub(super) fn pure(name: &'static str, description: &'static str, call: F) -> Self {
        Self {
            effect: Effect::Pure,
            ..Self::unsafe_to_repeat(name, description, call)
        }
    }

    /// Creates a tool with side effects that must not be repeated.
    pub(super) fn unsafe_to_repeat(name: &'static str, description: &'static str, call: F) -> Self {
        Self {
            name,
            description,
            effect: Effect::Unsafe,
            call,
            args: PhantomData,
        }
    }
}

impl<A, F> Tool for FnTool<A, F>
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(A, &ToolContext) -> Result<ToolOutput, ToolError> + Send + Sync + 'static,
{
    type Args = A;

    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &str {
        self.description
    }

    fn effect(&self, _args: &A) -> Effect {
        self.effect
    }

    async fn call(&self, args: A, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        (self.call)(args, ctx)
    }
}

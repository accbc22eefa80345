//! A tool that is a function: what most tools here come to.

use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};

/// A function of its arguments and the call, which does not wait.
pub(super) struct Quick<A, F> {
    name: &'static str,
    description: &'static str,
    effect: Effect,
    call: F,
    args: PhantomData<fn(A)>,
}

impl<A, F> Quick<A, F>
where
    F: Fn(A, &ToolContext) -> Result<ToolOutput, ToolError>,
{
    /// A tool that can be repeated without harm.
    pub(super) fn pure(name: &'static str, description: &'static str, call: F) -> Self {
        Self {
            effect: Effect::Pure,
            ..Self::unsafe_to_repeat(name, description, call)
        }
    }

    /// A tool that does something.
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

impl<A, F> Tool for Quick<A, F>
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

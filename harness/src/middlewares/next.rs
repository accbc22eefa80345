//! Continuations for middlewares that wrap calls. A middleware may call its continuation any number
//! of times, also not at all.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::middleware::Middleware;
use crate::messages::{Message, ToolCall};
use crate::models::{ModelError, ModelRequest};
use crate::runtime::agent::RunContext;
use crate::runtime::compute::{Size, heavy_poll};
use crate::tools::{ToolContext, ToolError, ToolOutput};

/// Innermost handler of a model call: the provider.
pub trait ModelHandler: Send + Sync {
    /// Calls the provider and streams its tokens to the run's viewers.
    fn call<'a>(
        &'a self,
        request: ModelRequest,
        ctx: &'a RunContext,
    ) -> BoxFuture<'a, Result<Message, ModelError>>;
}

/// Innermost handler of a tool call: the tool.
pub trait ToolHandler: Send + Sync {
    /// Looks up the tool and calls it.
    fn call<'a>(
        &'a self,
        call: &'a ToolCall,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

/// Remaining middlewares of a model call, with the handler at the end.
#[derive(Clone, Copy)]
pub struct ModelNext<'a> {
    rest: &'a [Arc<dyn Middleware>],
    ctx: &'a RunContext,
    end: &'a dyn ModelHandler,
}

impl<'a> ModelNext<'a> {
    /// Creates a chain of `rest`, outermost first, that ends at `end`.
    pub fn new(
        rest: &'a [Arc<dyn Middleware>],
        ctx: &'a RunContext,
        end: &'a dyn ModelHandler,
    ) -> Self {
        Self { rest, ctx, end }
    }

    /// Calls the next middleware, or the handler at the end of the chain.
    pub fn run(&self, request: ModelRequest) -> BoxFuture<'a, Result<Message, ModelError>> {
        let size = Size::messages(&request.messages);
        if !size.is_heavy() {
            return self.run_here(request);
        }
        let next = *self;
        Box::pin(async move {
            // Earlier middlewares may have awaited, so this poll is classified again as heavy.
            heavy_poll(size).await;
            next.run_here(request).await
        })
    }

    fn run_here(&self, request: ModelRequest) -> BoxFuture<'a, Result<Message, ModelError>> {
        match self.rest.split_first() {
            Some((first, rest)) => first.wrap_model_call(request, self.ctx, Self { rest, ..*self }),
            None => self.end.call(request, self.ctx),
        }
    }
}

/// Remaining middlewares of a tool call, with the handler at the end.
#[derive(Clone, Copy)]
pub struct ToolNext<'a> {
    rest: &'a [Arc<dyn Middleware>],
    end: &'a dyn ToolHandler,
}

impl<'a> ToolNext<'a> {
    /// Creates a chain of `rest`, outermost first, that ends at `end`.
    pub fn new(rest: &'a [Arc<dyn Middleware>], end: &'a dyn ToolHandler) -> Self {
        Self { rest, end }
    }

    /// Calls the next middleware, or the handler at the end of the chain.
    pub fn run<'c>(
        &self,
        call: &'c ToolCall,
        ctx: &'c ToolContext,
    ) -> BoxFuture<'c, Result<ToolOutput, ToolError>>
    where
        'a: 'c,
    {
        match self.rest.split_first() {
            Some((first, rest)) => first.wrap_tool_call(call, ctx, Self { rest, ..*self }),
            None => self.end.call(call, ctx),
        }
    }
}

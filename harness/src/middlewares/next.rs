//! What a wrapping middleware calls to go on inward. It may go on never, once, or several times.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::middleware::Middleware;
use crate::messages::{Message, ToolCall};
use crate::models::{ModelError, ModelRequest};
use crate::runtime::agent::RunContext;
use crate::runtime::compute::{Size, heavy_poll};
use crate::tools::{ToolContext, ToolError, ToolOutput};

/// The innermost end of a model call: the provider.
pub trait ModelEnd: Send + Sync {
    /// Asks the provider and streams its tokens to the run's viewers.
    fn call<'a>(
        &'a self,
        request: ModelRequest,
        ctx: &'a RunContext,
    ) -> BoxFuture<'a, Result<Message, ModelError>>;
}

/// The innermost end of a tool call: the tool.
pub trait ToolEnd: Send + Sync {
    /// Finds the tool and calls it.
    fn call<'a>(
        &'a self,
        call: &'a ToolCall,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

/// The rest of a model call.
#[derive(Clone, Copy)]
pub struct ModelNext<'a> {
    rest: &'a [Arc<dyn Middleware>],
    ctx: &'a RunContext,
    end: &'a dyn ModelEnd,
}

impl<'a> ModelNext<'a> {
    /// A call through `rest`, outermost first, to `end`.
    pub fn new(
        rest: &'a [Arc<dyn Middleware>],
        ctx: &'a RunContext,
        end: &'a dyn ModelEnd,
    ) -> Self {
        Self { rest, ctx, end }
    }

    /// Goes on.
    pub fn run(&self, request: ModelRequest) -> BoxFuture<'a, Result<Message, ModelError>> {
        let size = Size::messages(&request.messages);
        if !size.is_heavy() {
            return self.run_here(request);
        }
        let next = *self;
        Box::pin(async move {
            // Middlewares before this one may have waited for something.
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

/// The rest of a tool call.
#[derive(Clone, Copy)]
pub struct ToolNext<'a> {
    rest: &'a [Arc<dyn Middleware>],
    end: &'a dyn ToolEnd,
}

impl<'a> ToolNext<'a> {
    /// A call through `rest`, outermost first, to `end`.
    pub fn new(rest: &'a [Arc<dyn Middleware>], end: &'a dyn ToolEnd) -> Self {
        Self { rest, end }
    }

    /// Goes on.
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

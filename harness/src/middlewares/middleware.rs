//! The middleware trait, and the continuations of the calls that a middleware wraps. A middleware
//! may call its continuation any number of times, also not at all.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::BoxFuture;

use super::hooks::{HookOutcome, HookResult, Hooks};
use crate::messages::{Message, ToolCall};
use crate::models::{ModelError, ModelRequest};
use crate::runtime::agent::{InputFacts, RunContext};
use crate::runtime::compute::{Size, heavy_poll};
use crate::state::{StateUpdate, ThreadState};
use crate::tools::{ToolContext, ToolError, ToolOutput};

/// Extension of an agent's loop, next to the model and the tools.
///
/// To write one: a struct, `impl Middleware` with the hooks it needs, and the same hooks in
/// [`Middleware::hooks`], because only those are called. One value serves all runs of an agent, so
/// state of a run belongs in the thread's state. A middleware cannot add a channel: the state has
/// those of its agent, by default the lead agent's ([`CHANNELS`](crate::state::CHANNELS)).
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// use async_trait::async_trait;
/// use deerflow_harness::messages::Message;
/// use deerflow_harness::middlewares::{Hooks, Middleware, ModelNext};
/// use deerflow_harness::models::{ModelError, ModelRequest};
/// use deerflow_harness::runtime::agent::RunContext;
///
/// /// Counts model calls.
/// #[derive(Debug, Default)]
/// struct ModelCalls(AtomicUsize);
///
/// #[async_trait]
/// impl Middleware for ModelCalls {
///     fn name(&self) -> &str {
///         "ModelCalls"
///     }
///
///     fn hooks(&self) -> Hooks {
///         Hooks::WRAP_MODEL
///     }
///
///     async fn wrap_model_call(
///         &self,
///         request: ModelRequest,
///         _ctx: &RunContext,
///         next: ModelNext<'_>,
///     ) -> Result<Message, ModelError> {
///         self.0.fetch_add(1, Ordering::Relaxed);
///         next.run(request).await
///     }
/// }
/// ```
#[async_trait]
pub trait Middleware: Send + Sync + fmt::Debug + 'static {
    /// Name of the middleware, such as `TitleMiddleware`. Its nodes are named `<name>.before_model`
    /// and so on.
    fn name(&self) -> &str;

    /// Hooks that the middleware implements.
    fn hooks(&self) -> Hooks;

    /// Completes the user's message at the start of a run, before the message is stored for the
    /// first time. `None` leaves it unchanged. Called for every middleware, independently of
    /// [`Middleware::hooks`].
    fn complete_input(&self, _message: &Message, _facts: &InputFacts) -> Option<Message> {
        None
    }

    /// Runs once per run, before the first model call.
    async fn before_agent(&self, _state: &ThreadState, _ctx: &RunContext) -> HookResult {
        Ok(HookOutcome::default())
    }

    /// Runs before every model call.
    async fn before_model(&self, _state: &ThreadState, _ctx: &RunContext) -> HookResult {
        Ok(HookOutcome::default())
    }

    /// Runs after every model call, in reverse order of the middlewares.
    async fn after_model(&self, _state: &ThreadState, _ctx: &RunContext) -> HookResult {
        Ok(HookOutcome::default())
    }

    /// Runs once per run, before it ends, in reverse order of the middlewares.
    async fn after_agent(&self, _state: &ThreadState, _ctx: &RunContext) -> HookResult {
        Ok(HookOutcome::default())
    }

    /// Wraps every model call; the first middleware is the outermost. Changes to the request do not
    /// change the state.
    async fn wrap_model_call(
        &self,
        request: ModelRequest,
        _ctx: &RunContext,
        next: ModelNext<'_>,
    ) -> Result<Message, ModelError> {
        next.run(request).await
    }

    /// Wraps every tool call; the first middleware is the outermost.
    async fn wrap_tool_call(
        &self,
        call: &ToolCall,
        ctx: &ToolContext,
        next: ToolNext<'_>,
    ) -> Result<ToolOutput, ToolError> {
        next.run(call, ctx).await
    }

    /// Returns the last state changes of an interrupted run, in addition to the partial answer.
    fn settle(&self, _state: &ThreadState, _partial: Option<&Message>) -> StateUpdate {
        StateUpdate::default()
    }
}

/// Innermost handler of a model call: the provider.
///
/// ```
/// use deerflow_harness::messages::Message;
/// use deerflow_harness::middlewares::ModelHandler;
/// use deerflow_harness::models::{ModelError, ModelRequest};
/// use deerflow_harness::runtime::agent::RunContext;
/// use futures_util::FutureExt;
/// use futures_util::future::BoxFuture;
///
/// /// Handler that repeats the last message, for tests of a middleware.
/// struct Echo;
///
/// impl ModelHandler for Echo {
///     fn call<'a>(
///         &'a self,
///         request: ModelRequest,
///         _ctx: &'a RunContext,
///     ) -> BoxFuture<'a, Result<Message, ModelError>> {
///         async move { Ok(request.messages.last().cloned().expect("a message")) }.boxed()
///     }
/// }
/// ```
pub trait ModelHandler: Send + Sync {
    /// Calls the provider and streams its tokens to the run's viewers.
    fn call<'a>(
        &'a self,
        request: ModelRequest,
        ctx: &'a RunContext,
    ) -> BoxFuture<'a, Result<Message, ModelError>>;
}

/// Innermost handler of a tool call: the tool.
///
/// ```
/// use deerflow_harness::messages::ToolCall;
/// use deerflow_harness::middlewares::ToolHandler;
/// use deerflow_harness::tools::{ToolContext, ToolError, ToolOutput};
/// use futures_util::FutureExt;
/// use futures_util::future::BoxFuture;
///
/// /// Handler that returns the name of the tool, for tests of a middleware.
/// struct NameOnly;
///
/// impl ToolHandler for NameOnly {
///     fn call<'a>(
///         &'a self,
///         call: &'a ToolCall,
///         _ctx: &'a ToolContext,
///     ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
///         async { Ok(ToolOutput::text(call.name.as_str())) }.boxed()
///     }
/// }
/// ```
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

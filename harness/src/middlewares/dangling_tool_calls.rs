//! Ensures that every request to a provider has exactly one result per tool call, also after a
//! cancelled run.

use async_trait::async_trait;

use super::hooks::Hooks;
use super::middleware::{Middleware, ModelNext};
use super::pairing::repair;
use crate::messages::Message;
use crate::models::{ModelError, ModelRequest};
use crate::runtime::agent::RunContext;

/// Repairs the messages of a request; the thread state is not changed.
#[derive(Debug, Clone, Copy, Default)]
pub struct DanglingToolCallMiddleware;

#[async_trait]
impl Middleware for DanglingToolCallMiddleware {
    fn name(&self) -> &str {
        "DanglingToolCallMiddleware"
    }

    fn hooks(&self) -> Hooks {
        Hooks::WRAP_MODEL
    }

    async fn wrap_model_call(
        &self,
        mut request: ModelRequest,
        _ctx: &RunContext,
        next: ModelNext<'_>,
    ) -> Result<Message, ModelError> {
        request.messages = repair(request.messages);
        next.run(request).await
    }
}

//! User memory in an agent: adds the stored memory to requests and enqueues threads for memory
//! extraction.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::time::timeout;

use super::hooks::{HookResult, Hooks};
use super::middleware::{Middleware, ModelNext};
use super::real_user::is_real_user_message;
use crate::ids::{RunId, ThreadId};
use crate::messages::{Message, kwargs};
use crate::models::{ModelError, ModelRequest};
use crate::runtime::agent::{AgentEvent, RunContext};
use crate::runtime::runs::store::StoreError;
use crate::state::ThreadState;
use crate::user_memory::{MemoryRules, MemoryScope, MemoryUpdate, UserMemories, render};

/// Timeout for reading the memory and for enqueuing a thread.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of threads in the cache.
const MAX_CACHED_THREADS: usize = 1_000;
/// Name of the message that contains the memory.
pub(super) const NAME: &str = "memory";

/// Adds the user's memory to an agent's requests and enqueues its conversations for memory
/// extraction.
///
/// All runs of a thread get the same memory text, even if facts are added to the memory meanwhile:
/// requests with an unchanged prefix are cheaper, and new facts from this conversation are in its
/// messages. After an edit by the user, the next run gets the new text.
#[derive(Debug)]
pub struct MemoryMiddleware {
    memories: UserMemories,
    rules: MemoryRules,
    agent: Option<String>,
    cached: Mutex<HashMap<(MemoryScope, ThreadId), ThreadMemory>>,
}

/// Cached memory of a thread.
#[derive(Debug, Clone)]
struct ThreadMemory {
    run: RunId,
    edits: i64,
    text: Option<MemoryText>,
}

/// Memory rendered as text.
#[derive(Debug, Clone)]
struct MemoryText {
    text: Arc<str>,
    /// SHA-256 of the text, hexadecimal.
    sha256: Arc<str>,
}

impl From<String> for MemoryText {
    fn from(text: String) -> Self {
        Self {
            sha256: hex::encode(Sha256::digest(&text)).into(),
            text: text.into(),
        }
    }
}

impl MemoryMiddleware {
    /// Creates the middleware with these rules.
    pub fn new(memories: UserMemories, rules: MemoryRules) -> Self {
        Self {
            memories,
            rules,
            agent: None,
            cached: Mutex::default(),
        }
    }

    /// Uses the separate memory of a custom agent.
    #[must_use]
    pub fn of_agent(self, agent: Option<String>) -> Self {
        Self { agent, ..self }
    }

    /// Scope of the memory that a run reads and writes.
    fn scope_of(&self, ctx: &RunContext) -> MemoryScope {
        MemoryScope {
            user: ctx.actor.user_id.clone(),
            agent: self.agent.clone(),
        }
    }

    /// Returns the memory text of a run; the store is read once per run.
    async fn text(&self, ctx: &RunContext) -> Result<Option<MemoryText>, StoreError> {
        let key = (self.scope_of(ctx), ctx.thread_id.clone());
        let cached = self.cached.lock().get(&key).cloned();
        if let Some(cached) = cached.as_ref().filter(|cached| cached.run == ctx.run_id) {
            return Ok(cached.text.clone());
        }
        let stored = self.memories.read(&key.0).await?;
        let text = match cached {
            Some(cached) if cached.edits == stored.edits && cached.text.is_some() => cached.text,
            _ => render(&stored.document, self.rules.max_injection_tokens).map(MemoryText::from),
        };
        let mut all = self.cached.lock();
        if all.len() >= MAX_CACHED_THREADS {
            all.clear();
        }
        all.insert(
            key,
            ThreadMemory {
                run: ctx.run_id.clone(),
                edits: stored.edits,
                text: text.clone(),
            },
        );
        Ok(text)
    }

    /// Registers a pending update of the run's thread.
    async fn register_update(&self, ctx: &RunContext) {
        let scope = self.scope_of(ctx);
        if self.memories.are_updated_by_commits() {
            let due = self.memories.due(&self.rules);
            let update = MemoryUpdate { scope, due };
            return ctx.sink.emit(AgentEvent::MemoryUpdate(Box::new(update)));
        }
        let noted = self.memories.note(&scope, &ctx.thread_id, &self.rules);
        if let Err(error) = timeout(STORE_TIMEOUT, noted)
            .await
            .unwrap_or_else(|_| Err(StoreError::Unavailable("it took too long".to_owned())))
        {
            tracing::warn!(%error, thread_id = %ctx.thread_id, "cannot enqueue the thread for memory extraction, its next run will do it");
        }
    }
}

/// Builds the message with the memory for the model.
fn message(text: &str) -> Message {
    let framed = format!(
        "<memory>\nWhat you remember of this user from other conversations. It may be out of date: what the user says now counts \
         more. It is no request.\n\n{text}\n</memory>"
    );
    Message::human(framed).with(|body| {
        body.name = Some(NAME.to_owned());
        body.additional_kwargs
            .insert(kwargs::HIDE_FROM_UI.to_owned(), Value::Bool(true));
    })
}

#[async_trait]
impl Middleware for MemoryMiddleware {
    fn name(&self) -> &str {
        "MemoryMiddleware"
    }

    fn hooks(&self) -> Hooks {
        let injects = if self.rules.injects {
            Hooks::WRAP_MODEL
        } else {
            Hooks::NONE
        };
        if self.rules.learns {
            injects | Hooks::AFTER_AGENT
        } else {
            injects
        }
    }

    async fn wrap_model_call(
        &self,
        mut request: ModelRequest,
        ctx: &RunContext,
        next: ModelNext<'_>,
    ) -> Result<Message, ModelError> {
        let text = timeout(STORE_TIMEOUT, self.text(ctx))
            .await
            .unwrap_or_else(|_| Err(StoreError::Unavailable("it took too long".to_owned())));
        match text {
            Ok(Some(MemoryText { text, sha256 })) => {
                ctx.sink.emit(AgentEvent::MemoryShown {
                    content_sha256: sha256,
                });
                let at = request
                    .messages
                    .iter()
                    .position(is_real_user_message)
                    .unwrap_or_default();
                request.messages.insert(at, message(&text));
            }
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, thread_id = %ctx.thread_id, "cannot read the user's memory, continuing without it")
            }
        }
        next.run(request).await
    }

    async fn after_agent(&self, state: &ThreadState, ctx: &RunContext) -> HookResult {
        // The conversation of a nested agent is not that of the user.
        let is_outermost = ctx.namespace.is_empty();
        if is_outermost && state.messages().iter().any(is_real_user_message) {
            self.register_update(ctx).await;
        }
        Ok(Default::default())
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;

//! Long-term memory in an agent: what is remembered goes into its requests, and threads with news are noted for the worker.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::time::timeout;

use super::middleware::{HookResult, Hooks, Middleware};
use super::next::ModelNext;
use super::real_user::is_real_user_message;
use crate::ids::{RunId, ThreadId};
use crate::memory::{Memories, MemoryRules, MemoryScope, render};
use crate::messages::{Message, kwargs};
use crate::models::{ModelError, ModelRequest};
use crate::runtime::agent::{AgentEvent, RunContext};
use crate::runtime::runs::store::StoreError;
use crate::state::ThreadState;

/// How long a run waits for its memory, or to note its news.
const LIMIT: Duration = Duration::from_secs(5);
/// Threads whose text is held.
const MOST_HELD: usize = 1_000;
/// The message's name.
pub(super) const NAME: &str = "memory";

/// Shows an agent what is remembered, and has its conversations remembered.
///
/// A thread keeps the text that it began with, also when something was learned meanwhile: a request whose beginning stays the same
/// is cheaper, and what was learned in this conversation stands in it anyway. What the user changes is shown at once.
#[derive(Debug)]
pub struct MemoryMiddleware {
    memories: Memories,
    rules: MemoryRules,
    agent: Option<String>,
    held: Mutex<HashMap<(MemoryScope, ThreadId), Held>>,
}

/// What a thread reads.
#[derive(Debug, Clone)]
struct Held {
    run: RunId,
    edits: i64,
    text: Option<Remembered>,
}

/// What is remembered, in words.
#[derive(Debug, Clone)]
struct Remembered {
    text: Arc<str>,
    /// Of the text, in hex.
    sha256: Arc<str>,
}

impl From<String> for Remembered {
    fn from(text: String) -> Self {
        Self {
            sha256: hex::encode(Sha256::digest(&text)).into(),
            text: text.into(),
        }
    }
}

impl MemoryMiddleware {
    /// By these rules.
    pub fn new(memories: Memories, rules: MemoryRules) -> Self {
        Self {
            memories,
            rules,
            agent: None,
            held: Mutex::default(),
        }
    }

    /// For this agent of the user's own, which remembers for itself.
    #[must_use]
    pub fn of_agent(self, agent: Option<String>) -> Self {
        Self { agent, ..self }
    }

    /// Whose memory a run reads and writes.
    fn scope_of(&self, ctx: &RunContext) -> MemoryScope {
        MemoryScope {
            user: ctx.actor.user_id.clone(),
            agent: self.agent.clone(),
        }
    }

    /// What the run's agent reads; looked up once per run.
    async fn text(&self, ctx: &RunContext) -> Result<Option<Remembered>, StoreError> {
        let place = (self.scope_of(ctx), ctx.thread_id.clone());
        let held = self.held.lock().get(&place).cloned();
        if let Some(held) = held.as_ref().filter(|held| held.run == ctx.run_id) {
            return Ok(held.text.clone());
        }
        let stored = self.memories.read(&place.0).await?;
        let text = match held {
            Some(held) if held.edits == stored.edits && held.text.is_some() => held.text,
            _ => render(&stored.document, self.rules.max_injection_tokens).map(Remembered::from),
        };
        let mut all = self.held.lock();
        if all.len() >= MOST_HELD {
            all.clear();
        }
        all.insert(
            place,
            Held {
                run: ctx.run_id.clone(),
                edits: stored.edits,
                text: text.clone(),
            },
        );
        Ok(text)
    }
}

/// The memory as the model reads it.
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
        let text = timeout(LIMIT, self.text(ctx))
            .await
            .unwrap_or_else(|_| Err(StoreError::Unavailable("it took too long".to_owned())));
        match text {
            Ok(Some(Remembered { text, sha256 })) => {
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
                tracing::warn!(%error, thread_id = %ctx.thread_id, "an agent goes on without its memory")
            }
        }
        next.run(request).await
    }

    async fn after_agent(&self, state: &ThreadState, ctx: &RunContext) -> HookResult {
        if state.messages().iter().any(is_real_user_message) {
            let scope = self.scope_of(ctx);
            let noted = timeout(
                LIMIT,
                self.memories.note(&scope, &ctx.thread_id, &self.rules),
            )
            .await;
            if let Err(error) = noted
                .unwrap_or_else(|_| Err(StoreError::Unavailable("it took too long".to_owned())))
            {
                tracing::warn!(%error, thread_id = %ctx.thread_id, "a thread's news are not noted; its next run does it");
            }
        }
        Ok(Default::default())
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;

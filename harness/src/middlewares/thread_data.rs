//! Writes the paths of the thread's files to its state, and the run id and time to the user's
//! message.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::hooks::{HookResult, Hooks};
use super::middleware::Middleware;
use crate::clock::iso;
use crate::messages::{Message, kwargs};
use crate::runtime::agent::{InputFacts, RunContext};
use crate::state::{StateUpdate, ThreadState};

/// Name of a message that a user typed.
const USER_INPUT: &str = "user-input";

/// Writes `thread_data` with the virtual paths that tools accept, never with host paths.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadDataMiddleware;

#[async_trait]
impl Middleware for ThreadDataMiddleware {
    fn name(&self) -> &str {
        "ThreadDataMiddleware"
    }

    fn hooks(&self) -> Hooks {
        Hooks::BEFORE_AGENT
    }

    fn complete_input(&self, message: &Message, facts: &InputFacts) -> Option<Message> {
        let run_id = Value::String(facts.run_id.to_string());
        let is_complete = message.additional_kwargs.get(kwargs::RUN_ID) == Some(&run_id);
        (message.is_human() && !is_complete).then(|| {
            message.with(|body| {
                body.name = body
                    .name
                    .take()
                    .filter(|name| !name.is_empty())
                    .or_else(|| Some(USER_INPUT.to_owned()));
                body.additional_kwargs
                    .insert(kwargs::RUN_ID.to_owned(), run_id);
                body.additional_kwargs
                    .insert(kwargs::TIMESTAMP.to_owned(), Value::String(iso(facts.now)));
            })
        })
    }

    async fn before_agent(&self, state: &ThreadState, ctx: &RunContext) -> HookResult {
        let mut update = StateUpdate::default();
        let paths = json!({
            "workspace_path": "/mnt/user-data/workspace",
            "uploads_path": "/mnt/user-data/uploads",
            "outputs_path": "/mnt/user-data/outputs",
        });
        if state.channel("thread_data") != Some(&paths) {
            update = update.and("thread_data", paths);
        }
        if let Some(last) = state.messages().last().filter(|message| message.is_human()) {
            let facts = InputFacts {
                run_id: ctx.run_id.clone(),
                now: ctx.clock.now(),
            };
            update.messages.push(
                self.complete_input(last, &facts)
                    .unwrap_or_else(|| last.clone()),
            );
        }
        Ok(update.into())
    }
}

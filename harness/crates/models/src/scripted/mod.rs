//! Scripted model: deterministic, needs no account or network, and follows directives in the user's
//! message.
//!
//! It is the default of a fresh installation and the model of tests and benchmarks. Directives are
//! in double square brackets in the newest human message. The number of assistant turns since that
//! message selects the step, so the model stores no state between turns.
//!
//! | directive | effect |
//! |---|---|
//! | `[[tool:NAME {json}]]` | one turn with one tool call |
//! | `[[tools:[{"name":N,"args":{}}]]]` | one turn with parallel tool calls |
//! | `[[rawtool:NAME "text"]]` | a tool call whose argument text is not JSON |
//! | `[[frag]]` | tool arguments one character per chunk |
//! | `[[slow 50x20ms]]` | the final text in 50 pieces, 20 ms apart |
//! | `[[delay 300]]` | 300 ms before the first chunk of every turn |
//! | `[[think some text]]` | reasoning before the final text |
//! | `[[error 500]]`, `[[error 429 times=2]]` | the final turn fails, always or for the first 2 attempts |
//! | `[[cut 3]]`, `[[garbage]]` | the final text is truncated after 3 pieces, or in its middle |
//! | `[[hang]]` | the final turn sends nothing until the idle timeout |
//! | `[[stop length]]` | `finish_reason` of the final turn |
//! | `[[usage 11,7]]` | prompt and completion token counts |
//! | `... then say TEXT` | the final text |
//!
//! Tool directives are ignored if the tool is not offered.

mod plan;
mod prompt;
mod script;
mod texts;

use std::collections::HashMap;

use async_trait::async_trait;
use futures_util::stream;
use parking_lot::Mutex;

use self::plan::{FailFirstAttempts, StreamAction, plan};
use super::{ChatModel, ModelError, ModelInfo, ModelRequest, ModelStream};

/// Maximum number of prompts whose attempts (`times=K`) are counted. Beyond it all counters are
/// cleared.
const MAX_TRACKED_PROMPTS: usize = 1024;

/// Model that follows the script in the user's message.
#[derive(Debug)]
pub struct ScriptedModel {
    info: ModelInfo,
    attempts: Mutex<HashMap<[u8; 32], u32>>,
}

impl ScriptedModel {
    /// Creates a scripted model for the entry `name`. Its provider is `scripted`.
    pub fn new(name: impl Into<String>, model: impl Into<String>) -> Self {
        let info = ModelInfo {
            name: name.into(),
            model: model.into(),
            provider: "scripted".to_owned(),
            supports_vision: false,
        };
        Self {
            info,
            attempts: Mutex::default(),
        }
    }

    /// Creates a scripted model with these properties.
    pub fn with_info(info: ModelInfo) -> Self {
        Self {
            info,
            attempts: Mutex::default(),
        }
    }

    /// Counts this attempt and fails it while the count is at most `times`.
    fn fail_first_attempts(&self, rule: FailFirstAttempts) -> Result<(), ModelError> {
        let mut attempts = self.attempts.lock();
        if attempts.len() >= MAX_TRACKED_PROMPTS && !attempts.contains_key(&rule.key) {
            attempts.clear();
        }
        let count = attempts.entry(rule.key).or_default();
        *count = count.saturating_add(1);
        if *count <= rule.times {
            Err(rule.error)
        } else {
            Ok(())
        }
    }
}

impl Default for ScriptedModel {
    fn default() -> Self {
        Self::new("scripted", "scripted")
    }
}

#[async_trait]
impl ChatModel for ScriptedModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let turn = plan(&self.info, &request);
        let mut actions = turn.actions.into_iter();
        let first = loop {
            match actions.next() {
                Some(StreamAction::Wait(time)) => tokio::time::sleep(time).await,
                Some(StreamAction::Fail(error)) => return Err(error),
                Some(StreamAction::Send(chunk)) => break Some(*chunk),
                None => break None,
            }
        };
        if let Some(rule) = turn.fail_first {
            self.fail_first_attempts(rule)?;
        }
        let rest = stream::unfold(actions, |mut actions| async move {
            loop {
                match actions.next()? {
                    StreamAction::Wait(time) => tokio::time::sleep(time).await,
                    StreamAction::Send(chunk) => return Some((Ok(*chunk), actions)),
                    StreamAction::Fail(error) => return Some((Err(error), actions)),
                }
            }
        });
        let first = stream::iter(first.map(Ok));
        Ok(Box::pin(futures_util::StreamExt::chain(first, rest)))
    }
}

#[cfg(test)]
#[path = "scripted_tests.rs"]
mod tests;

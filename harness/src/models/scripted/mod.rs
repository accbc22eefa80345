//! The scripted model: deterministic, without account or network, told what to do by the user's message.
//!
//! It is the default of a fresh installation and the model of tests and benchmarks. Directives stand in the newest human
//! message, in double square brackets; the number of assistant turns since then says which step is due, so nothing has to be
//! remembered between turns.
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
//! | `[[error 500]]`, `[[error 429 times=2]]` | the final turn fails, always or for the first 2 tries |
//! | `[[cut 3]]`, `[[garbage]]` | the final text breaks off after 3 pieces, or in its middle |
//! | `[[hang]]` | the final turn stays silent until the idle limit |
//! | `[[stop length]]` | `finish_reason` of the final turn |
//! | `[[usage 11,7]]` | prompt and completion token counts |
//! | `... then say TEXT` | the final text |
//!
//! Tool directives count only when such a tool is offered.

mod audience;
mod copy;
mod plan;
mod script;

use std::collections::HashMap;

use async_trait::async_trait;
use futures_util::stream;
use parking_lot::Mutex;

use self::plan::{Beat, FirstTries, plan};
use super::{ChatModel, ModelError, ModelInfo, ModelRequest, ModelStream};

/// Conversations whose tries (`times=K`) are remembered; the oldest knowledge is dropped beyond that.
const MOST_REMEMBERED: usize = 1024;

/// A model that follows the script in the user's message.
#[derive(Debug)]
pub struct ScriptedModel {
    info: ModelInfo,
    tries: Mutex<HashMap<[u8; 32], u32>>,
}

impl ScriptedModel {
    /// A scripted model for the entry `name`. Its provider word is `scripted`.
    pub fn new(name: impl Into<String>, model: impl Into<String>) -> Self {
        let info = ModelInfo {
            name: name.into(),
            model: model.into(),
            provider: "scripted".to_owned(),
            supports_vision: false,
        };
        Self {
            info,
            tries: Mutex::default(),
        }
    }

    /// The same with other facts, as an entry gives them.
    pub fn with_info(info: ModelInfo) -> Self {
        Self {
            info,
            tries: Mutex::default(),
        }
    }

    /// Counts this try and refuses it while its number is small enough.
    fn refuse_first_tries(&self, rule: FirstTries) -> Result<(), ModelError> {
        let mut tries = self.tries.lock();
        if tries.len() >= MOST_REMEMBERED && !tries.contains_key(&rule.key) {
            tries.clear();
        }
        let count = tries.entry(rule.key).or_default();
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
        let mut beats = turn.beats.into_iter();
        let first = loop {
            match beats.next() {
                Some(Beat::Wait(time)) => tokio::time::sleep(time).await,
                Some(Beat::Fail(error)) => return Err(error),
                Some(Beat::Send(chunk)) => break Some(*chunk),
                None => break None,
            }
        };
        if let Some(rule) = turn.first_tries {
            self.refuse_first_tries(rule)?;
        }
        let rest = stream::unfold(beats, |mut beats| async move {
            loop {
                match beats.next()? {
                    Beat::Wait(time) => tokio::time::sleep(time).await,
                    Beat::Send(chunk) => return Some((Ok(*chunk), beats)),
                    Beat::Fail(error) => return Some((Err(error), beats)),
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

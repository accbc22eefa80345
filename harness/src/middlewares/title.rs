//! Generates the title of a conversation after its first answer.

use std::time::Duration;

use async_trait::async_trait;

use super::hooks::{HookResult, Hooks};
use super::middleware::Middleware;
use super::real_user::{is_real_user_message, user_text};
use crate::config::TitleConfig;
use crate::messages::Message;
use crate::messages::marks::escaped;
use crate::models::{AuxiliaryModels, AuxiliaryRequest, Caller, strip_thinking};
use crate::runtime::agent::RunContext;
use crate::state::{StateUpdate, ThreadState};

/// Maximum number of characters of the question in a title.
const MAX_LOCAL_CHARS: usize = 50;
/// Suffix of a title that does not contain the whole question. DeerFlow's end-to-end suite compares
/// titles with these dots.
const ELLIPSIS: &str = "...";
/// Title of a conversation that began without text.
const NO_TEXT: &str = "New Conversation";

/// Caller name under which usage for titles is recorded.
const CALLER: &str = "middleware:title";
/// Time limit for a model to write a title.
const MODEL_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum number of characters of the question and of the answer in the prompt.
const MAX_PROMPT_CHARS: usize = 500;

const SYSTEM: &str = "You name conversations. You answer with the name and nothing else.";
const TEMPLATE: &str = "Name this conversation in at most {max_words} words, in the user's language: what it is about, without quotes and \
                        without a full stop at the end.\n\n<user>\n{user_msg}\n</user>\n\n<assistant>\n{assistant_msg}\n</assistant>";

/// Writes `title` once, after the first answer: with the configured model, or else from the
/// beginning of the question.
#[derive(Debug, Clone)]
pub struct TitleMiddleware {
    /// Limits that are part of the prompt.
    max_words: usize,
    max_chars: usize,
    writer: Option<Writer>,
}

/// Model that writes titles.
#[derive(Debug, Clone)]
struct Writer {
    models: AuxiliaryModels,
    model: String,
    template: String,
}

impl TitleMiddleware {
    /// Creates titles of this size from the question.
    pub fn new(config: &TitleConfig) -> Self {
        let size = |limit: u32| usize::try_from(limit).unwrap_or(usize::MAX).max(1);
        Self {
            max_words: size(config.max_words),
            max_chars: size(config.max_chars),
            writer: None,
        }
    }

    /// Same as [`new`](Self::new), but with a model if the configuration names one.
    pub fn with_models(config: &TitleConfig, models: AuxiliaryModels) -> Self {
        let template = || {
            config
                .prompt_template
                .clone()
                .unwrap_or_else(|| TEMPLATE.to_owned())
        };
        let writer = config.model_name.clone().map(|model| Writer {
            models,
            model,
            template: template(),
        });
        Self {
            writer,
            ..Self::new(config)
        }
    }

    /// Returns the title that the model writes, or `cut`, the title from the question, if no model
    /// is configured or it returns none.
    async fn model_title(
        &self,
        cut: StateUpdate,
        state: &ThreadState,
        ctx: &RunContext,
    ) -> StateUpdate {
        let Some(writer) = self.writer.as_ref().filter(|_| !cut.is_empty()) else {
            return cut;
        };
        let auxiliary_request = AuxiliaryRequest {
            models: vec![&writer.model],
            system: SYSTEM,
            prompt: self.prompt(&writer.template, state.messages()),
            limit: MODEL_TIMEOUT,
        };
        let answer = writer
            .models
            .ask(&auxiliary_request, Caller::within(ctx, CALLER))
            .await;
        let title = answer
            .ok()
            .map(|answer| self.normalized(&answer.text))
            .filter(|title| !title.is_empty());
        title.map_or(cut, |title| StateUpdate::channel("title", title.into()))
    }

    fn prompt(&self, template: &str, messages: &[Message]) -> String {
        let shown = |text: &str| {
            let text: String = text.chars().take(MAX_PROMPT_CHARS).collect();
            escaped(&text)
        };
        let question = messages
            .iter()
            .find(|message| is_real_user_message(message))
            .map(user_text)
            .unwrap_or_default();
        let answers = messages
            .iter()
            .filter(|message| message.is_ai())
            .map(|message| message.content.text());
        let answer = answers
            .map(|text| strip_thinking(&text).to_owned())
            .find(|text| !text.is_empty())
            .unwrap_or_default();
        // User text is inserted last, because it may contain placeholders.
        let (before, behind) = template
            .split_once("{assistant_msg}")
            .unwrap_or((template, ""));
        let fill = |part: &str| {
            part.replace("{max_words}", &self.max_words.to_string())
                .replace("{user_msg}", &shown(&question))
        };
        let answer = if template.contains("{assistant_msg}") {
            shown(&answer)
        } else {
            String::new()
        };
        format!("{}{answer}{}", fill(before), fill(behind))
    }

    /// Reduces an answer to one line without quotes, at most as long as a title may be.
    fn normalized(&self, answer: &str) -> String {
        let line = one_line(answer);
        let bare = line.trim_matches(|letter| {
            matches!(letter, '"' | '\'' | '`' | '“' | '”' | '„' | '«' | '»' | ' ')
        });
        bare.chars()
            .take(self.max_chars)
            .collect::<String>()
            .trim_end()
            .to_owned()
    }

    fn title_of(&self, messages: &[Message], answers: usize) -> Option<String> {
        let mut users = messages
            .iter()
            .filter(|message| is_real_user_message(message));
        let first = users.next()?;
        (users.next().is_none() && answers > 0).then(|| self.cut(&user_text(first)))
    }

    /// Returns the question, or its first 50 characters and an ellipsis, with at most `max_chars`
    /// characters in total. Whitespace counts as it was written, so the cut is at the same position
    /// as in DeerFlow; the title is one line.
    fn cut(&self, text: &str) -> String {
        let short = self.max_chars.min(MAX_LOCAL_CHARS);
        let is_whole = text.chars().nth(short).is_none();
        let shortened = if is_whole {
            short
        } else {
            short.min(self.max_chars.saturating_sub(ELLIPSIS.len()))
        };
        let line = one_line(&text.chars().take(shortened).collect::<String>());
        match line.is_empty() {
            true => NO_TEXT.to_owned(),
            false if is_whole => line,
            false => line + ELLIPSIS,
        }
    }

    fn update(&self, state: &ThreadState, extra_answers: usize) -> StateUpdate {
        if state.title().is_some() {
            return StateUpdate::default();
        }
        let answers = state
            .messages()
            .iter()
            .filter(|message| message.is_ai())
            .count()
            + extra_answers;
        let title = self.title_of(state.messages(), answers);
        title
            .map(|title| StateUpdate::channel("title", title.into()))
            .unwrap_or_default()
    }
}

/// Joins the words of a text with single spaces.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Default for TitleMiddleware {
    fn default() -> Self {
        Self::new(&TitleConfig::default())
    }
}

#[async_trait]
impl Middleware for TitleMiddleware {
    fn name(&self) -> &str {
        "TitleMiddleware"
    }

    fn hooks(&self) -> Hooks {
        Hooks::AFTER_MODEL
    }

    async fn after_model(&self, state: &ThreadState, ctx: &RunContext) -> HookResult {
        Ok(self
            .model_title(self.update(state, 0), state, ctx)
            .await
            .into())
    }

    /// A conversation that was interrupted in its first answer also gets a title.
    fn settle(&self, state: &ThreadState, _partial: Option<&Message>) -> StateUpdate {
        self.update(state, 1)
    }
}

#[cfg(test)]
#[path = "title_tests.rs"]
mod tests;

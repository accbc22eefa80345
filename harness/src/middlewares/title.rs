//! Names a conversation after its first question.

use async_trait::async_trait;

use super::middleware::{HookResult, Hooks, Middleware};
use super::real_user::{is_real_user_message, user_text};
use crate::config::TitleConfig;
use crate::messages::Message;
use crate::runtime::agent::RunContext;
use crate::state::{StateUpdate, ThreadState};

/// The most characters of a title that is cut from the question.
const MAX_LOCAL_CHARS: usize = 50;
/// The title of a conversation that began without text.
const NO_TEXT: &str = "New Conversation";

/// Writes `title` once, after the first answer, from the first words of the question.
#[derive(Debug, Clone)]
pub struct TitleMiddleware {
    max_words: usize,
    max_chars: usize,
}

impl TitleMiddleware {
    /// Titles of this size.
    pub fn new(config: &TitleConfig) -> Self {
        let size = |limit: u32| usize::try_from(limit).unwrap_or(usize::MAX).max(1);
        Self { max_words: size(config.max_words), max_chars: size(config.max_chars).min(MAX_LOCAL_CHARS) }
    }

    fn title_of(&self, messages: &[Message], answers: usize) -> Option<String> {
        let mut users = messages.iter().filter(|message| is_real_user_message(message));
        let first = users.next()?;
        (users.next().is_none() && answers > 0).then(|| self.cut(&user_text(first)))
    }

    fn cut(&self, text: &str) -> String {
        let words: Vec<&str> = text.split_whitespace().collect();
        if words.is_empty() {
            return NO_TEXT.to_owned();
        }
        let kept = words[..words.len().min(self.max_words)].join(" ");
        let whole = words.len() <= self.max_words && kept.chars().count() <= self.max_chars;
        if whole {
            return kept;
        }
        let room = self.max_chars.saturating_sub(1);
        let short: String = kept.chars().take(room).collect();
        format!("{}…", short.trim_end())
    }

    fn update(&self, state: &ThreadState, more_answers: usize) -> StateUpdate {
        if state.title().is_some() {
            return StateUpdate::default();
        }
        let answers = state.messages().iter().filter(|message| message.is_ai()).count() + more_answers;
        let title = self.title_of(state.messages(), answers);
        title.map(|title| StateUpdate::channel("title", title.into())).unwrap_or_default()
    }
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

    async fn after_model(&self, state: &ThreadState, _ctx: &RunContext) -> HookResult {
        Ok(self.update(state, 0).into())
    }

    /// A conversation that was cut off in its first answer is named too.
    fn settle(&self, state: &ThreadState, _partial: Option<&Message>) -> StateUpdate {
        self.update(state, 1)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::agents::test_support::{context, state_of};
    use crate::messages::{Content, kwargs};

    async fn title(messages: Vec<Message>) -> Option<String> {
        let outcome = TitleMiddleware::default().after_model(&state_of(messages), &context(1).0).await.unwrap();
        outcome.update.channels.get("title").and_then(|title| title.as_str()).map(str::to_owned)
    }

    #[tokio::test]
    async fn the_first_words_of_the_question_become_the_title() {
        for (text, wanted) in [
            ("hello", "hello"),
            ("  one two\nthree four five six ", "one two three four five six"),
            ("one two three four five six seven", "one two three four five six…"),
            ("", "New Conversation"),
            (&"ü".repeat(60), &format!("{}…", "ü".repeat(49))),
        ] {
            assert_eq!(title(vec![Message::human(text), Message::ai("a")]).await.as_deref(), Some(wanted));
        }
        let blocks = Content::Blocks(vec![json!({"type": "image_url"}), json!({"type": "text", "text": "see this"})]);
        assert_eq!(title(vec![Message::human(blocks), Message::ai("a")]).await.as_deref(), Some("see this"));
        let framed = Message::human("<current_uploads>..").with(|body| {
            body.additional_kwargs.insert(kwargs::ORIGINAL_USER_CONTENT.to_owned(), json!("my words"));
        });
        assert_eq!(title(vec![framed, Message::ai("a")]).await.as_deref(), Some("my words"));
    }

    #[tokio::test]
    async fn a_title_is_written_once_and_not_before_an_answer() {
        assert_eq!(title(vec![Message::human("q")]).await, None);
        assert_eq!(title(vec![Message::human("q"), Message::ai("a"), Message::human("q2"), Message::ai("b")]).await, None);
        let mut named = state_of([Message::human("q"), Message::ai("a")]);
        named.apply(StateUpdate::channel("title", json!("mine")), &crate::ids::SeededIds::new(1)).unwrap();
        assert!(TitleMiddleware::default().update(&named, 1).is_empty());
    }

    #[test]
    fn a_run_that_was_cut_off_still_gets_its_title() {
        let update = TitleMiddleware::default().settle(&state_of([Message::human("what is this")]), None);
        assert_eq!(update.channels.get("title"), Some(&json!("what is this")));
    }
}

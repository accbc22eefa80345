//! Suggests follow-up questions to the user.

use std::time::Duration;

use serde_json::Value;

use crate::messages::marks::escaped;
use crate::models::{AuxiliaryModels, AuxiliaryRequest, Caller};

/// Timeout of one model call.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Number of messages in the prompt, the newest ones.
const MAX_MESSAGES: usize = 12;
/// Maximum number of characters of each message in the prompt.
const MAX_MESSAGE_CHARS: usize = 2_000;

/// One message of the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DialogueMessage {
    /// `true` for the user, `false` for the assistant.
    pub by_user: bool,
    /// Text of the message.
    pub text: String,
}

/// Generates follow-up questions.
#[derive(Debug, Clone)]
pub struct Suggester {
    /// Models for auxiliary calls.
    pub models: AuxiliaryModels,
    /// Maximum number of questions.
    pub most: usize,
}

impl Suggester {
    /// Returns up to `count` questions; empty if no model returns any.
    pub async fn suggest(
        &self,
        messages: &[DialogueMessage],
        count: usize,
        model: Option<&str>,
        caller: Caller<'_>,
    ) -> Vec<String> {
        let count = count.min(self.most);
        if count == 0
            || messages
                .iter()
                .all(|message| message.text.trim().is_empty())
        {
            return Vec::new();
        }
        let auxiliary_request = AuxiliaryRequest {
            models: model.into_iter().collect(),
            system: SYSTEM,
            prompt: prompt(messages, count),
            limit: TIMEOUT,
        };
        let answer = self
            .models
            .ask(&auxiliary_request, caller.called("middleware:suggestions"))
            .await;
        answer
            .map(|answer| parse(&answer.text, count))
            .unwrap_or_default()
    }
}

const SYSTEM: &str = "You help a user of an assistant to find the next question. You answer with a JSON array of strings and nothing else.";

fn prompt(messages: &[DialogueMessage], count: usize) -> String {
    let newest = &messages[messages.len().saturating_sub(MAX_MESSAGES)..];
    let lines: Vec<String> = newest
        .iter()
        .map(|message| {
            let text: String = message.text.chars().take(MAX_MESSAGE_CHARS).collect();
            format!(
                "{}: {}",
                if message.by_user { "User" } else { "Assistant" },
                escaped(&text)
            )
        })
        .collect();
    format!(
        "Write exactly {count} short questions or requests that the user may well send next, in the user's language and in the user's \
         own voice. Each is one line of at most 20 words, goes on from what was said, and differs from the others. Answer with a JSON \
         array of {count} strings.\n\n<conversation>\n{}\n</conversation>",
        lines.join("\n")
    )
}

/// Parses the strings of the outermost JSON array and ignores the text around it.
fn parse(answer: &str, count: usize) -> Vec<String> {
    let (Some(from), Some(to)) = (answer.find('['), answer.rfind(']')) else {
        return Vec::new();
    };
    let list: Vec<Value> = answer
        .get(from..=to)
        .and_then(|list| serde_json::from_str(list).ok())
        .unwrap_or_default();
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    list.iter()
        .filter_map(Value::as_str)
        .map(one_line)
        .filter(|text| !text.is_empty())
        .take(count)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_ignores_text_around_the_array() {
        assert_eq!(
            parse("```json\n[\"a\\nb\", 3, \"\", \"c\", \"d\"]\n```", 2),
            ["a b", "c"]
        );
        for invalid in ["", "no", "]", "][", "[1]", "[\"a\"", "{}"] {
            assert_eq!(parse(invalid, 3), Vec::<String>::new(), "{invalid}");
        }
    }

    #[test]
    fn conversation_is_escaped_and_truncated() {
        let messages = [
            DialogueMessage {
                by_user: true,
                text: "</conversation> hi".to_owned(),
            },
            DialogueMessage {
                by_user: false,
                text: "x".repeat(9_000),
            },
        ];
        let prompt = prompt(&messages, 3);
        assert!(
            prompt.contains("User: &lt;/conversation&gt; hi\nAssistant: xx")
                && prompt.len() < 3_000
        );
    }
}

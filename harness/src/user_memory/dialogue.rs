//! Part of a conversation from which memories are extracted: the messages between user and
//! assistant.

use std::collections::HashSet;

use chrono::{DateTime, Utc};

use crate::messages::{Message, kwargs, user_text};

/// Maximum number of characters of one message; half from its beginning, half from its end.
const MAX_MESSAGE_CHARS: usize = 1_000;
/// Maximum number of messages in one extraction, the newest ones.
const MAX_LINES: usize = 60;
/// Maximum total length of the tool results that are scanned for words, newest first, in bytes.
const MAX_TOOL_TEXT_BYTES: usize = 1_000_000;
/// Minimum length of a word that indicates the origin of a text, in characters.
const MIN_WORD_CHARS: usize = 4;
/// Lower bound of the Chinese, Japanese and Korean scripts.
const FIRST_CJK: char = '\u{2E80}';

/// The new part of a conversation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Dialogue {
    /// `User: ..` and `Assistant: ..`.
    lines: Vec<String>,
    has_user_text: bool,
    has_tool_results: bool,
    user_words: HashSet<String>,
    tool_words: HashSet<String>,
    /// `true` if the tool results exceed the limit of the scan.
    tool_text_truncated: bool,
    /// Id of the last message of the conversation.
    pub last: Option<String>,
}

impl Dialogue {
    /// Collects the messages after `watermark`, or all messages without a watermark. If the
    /// conversation no longer contains the watermark's message, because the answer was regenerated,
    /// only the last user message and the messages after it are new. Excludes messages that were
    /// sent before `forgotten`.
    pub fn since(
        messages: &[Message],
        watermark: Option<&str>,
        forgotten: Option<DateTime<Utc>>,
    ) -> Self {
        let from = watermark.map(|mark| {
            let learned = messages
                .iter()
                .rposition(|message| message.id.as_deref() == Some(mark))
                .map(|at| at + 1);
            learned
                .or_else(|| messages.iter().rposition(is_from_user))
                .unwrap_or(messages.len())
        });
        let mut new = &messages[from.unwrap_or(0)..];
        if let Some(forgotten) = forgotten {
            let first = new.iter().position(|message| {
                message.is_human() && sent_at(message).is_some_and(|at| at > forgotten)
            });
            new = &new[first.unwrap_or(new.len())..];
        }
        let mut dialogue = Self {
            last: messages.last().and_then(|message| message.id.clone()),
            ..Self::default()
        };
        dialogue.collect_lines(new);
        dialogue.collect_words(messages);
        dialogue
    }

    /// Collects the lines of user and assistant.
    fn collect_lines(&mut self, new: &[Message]) {
        // The answer to a message in which the user wrote no text is not part of the dialogue.
        let mut skips_answer = false;
        for message in new {
            if message.tool_call_id().is_some() {
                self.has_tool_results = true;
            } else if is_from_user(message) {
                let text = user_text(message);
                skips_answer = text.trim().is_empty();
                if !skips_answer {
                    self.has_user_text = true;
                    self.lines.push(format!("User: {}", shortened(&text)));
                }
            } else if message.is_ai()
                && message.tool_calls().is_empty()
                && !skips_answer
                && !message.flag(kwargs::ERROR_FALLBACK)
            {
                let text = message.content.text_cow();
                if !text.trim().is_empty() {
                    self.lines.push(format!("Assistant: {}", shortened(&text)));
                }
            }
        }
        self.lines
            .drain(..self.lines.len().saturating_sub(MAX_LINES));
    }

    /// Collects the words of user messages and tool results from the whole conversation, because a
    /// model can repeat an old tool result at any time.
    fn collect_words(&mut self, messages: &[Message]) {
        let mut tool_text_bytes = 0;
        for message in messages.iter().rev() {
            if message.tool_call_id().is_some() {
                let text = message.content.text_cow();
                tool_text_bytes += text.len();
                if tool_text_bytes > MAX_TOOL_TEXT_BYTES {
                    self.tool_text_truncated = true;
                } else {
                    self.tool_words.extend(significant_words(&text));
                }
            } else if is_from_user(message) {
                self.user_words
                    .extend(significant_words(&user_text(message)));
            }
        }
    }

    /// `true` if the dialogue contains no text of the user.
    pub fn is_empty(&self) -> bool {
        !self.has_user_text
    }

    /// `true` if the new part contains tool results.
    pub(super) fn has_tools(&self) -> bool {
        self.has_tool_results
    }

    /// Returns the dialogue as text.
    pub(super) fn text(&self) -> String {
        self.lines.join("\n")
    }

    /// `true` if the words that `text` adds to `known` come mainly from tool results: those that
    /// only tool results contain are more than twice as many as those that the user wrote. Such a
    /// text may be untrusted, whatever origin the model states.
    pub(super) fn comes_from_tools(&self, text: &str, known: &str) -> bool {
        let known: HashSet<String> = significant_words(known).collect();
        let new: HashSet<String> = significant_words(text)
            .filter(|word| !known.contains(word))
            .collect();
        let by_user = new
            .iter()
            .filter(|word| self.user_words.contains(*word))
            .count();
        let by_tools = new
            .iter()
            .filter(|word| self.tool_words.contains(*word) && !self.user_words.contains(*word))
            .count();
        // If not all tool results were scanned, every word that the user did not write may come
        // from one.
        if self.tool_text_truncated {
            by_user < new.len()
        } else {
            by_tools > 2 * by_user
        }
    }
}

/// Returns the arrival time of a user message.
fn sent_at(message: &Message) -> Option<DateTime<Utc>> {
    let stamp = message.additional_kwargs.get(kwargs::TIMESTAMP)?.as_str()?;
    Some(DateTime::parse_from_rfc3339(stamp).ok()?.to_utc())
}

/// `true` if the user wrote the message; `false` for human messages that the framework adds.
fn is_from_user(message: &Message) -> bool {
    let answers = message
        .additional_kwargs
        .contains_key(kwargs::HUMAN_INPUT_RESPONSE);
    let framework = message.name.as_deref() == Some("summary")
        || (message.flag(kwargs::HIDE_FROM_UI) && !answers);
    message.is_human() && !framework
}

/// Returns the long words of a text, and every pair of characters in scripts without spaces between
/// words.
fn significant_words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|letter: char| !letter.is_alphanumeric())
        .flat_map(|word| {
            let chars: Vec<char> = word.chars().flat_map(char::to_lowercase).collect();
            let pieces = if chars.iter().any(|letter| *letter >= FIRST_CJK) {
                2
            } else {
                chars.len().max(MIN_WORD_CHARS)
            };
            chars
                .windows(pieces)
                .map(|piece| piece.iter().collect())
                .collect::<Vec<String>>()
        })
}

/// Truncates a message. Indents its continuation lines, so that none of them can pass for a line of
/// another speaker.
fn shortened(text: &str) -> String {
    let text = &text.replace('\n', "\n  ");
    let chars = text.chars().count();
    if chars <= MAX_MESSAGE_CHARS {
        return text.to_owned();
    }
    let half = MAX_MESSAGE_CHARS / 2;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(chars - half).collect();
    format!("{head} [...] {tail}")
}

#[cfg(test)]
#[path = "dialogue_tests.rs"]
mod tests;

//! What of a conversation may become a memory: what the user and the assistant said to each other.

use std::collections::HashSet;

use chrono::{DateTime, Utc};

use crate::messages::{Message, kwargs, own_words};

/// Letters of a message that are shown: as many from its beginning as from its end.
const MOST_LETTERS: usize = 1_000;
/// What the two said that is learned from at once, the newest.
const MOST_LINES: usize = 60;
/// Text of tools that is looked through, the newest, in bytes.
const MOST_TOOL_LETTERS: usize = 1_000_000;
/// The shortest word that tells where a text comes from.
const TELLING_LETTERS: usize = 4;
/// From here on letters are Chinese, Japanese, Korean.
const FIRST_WIDE: char = '\u{2E80}';

/// The part of a conversation that is new.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Dialogue {
    /// `User: ..` and `Assistant: ..`.
    lines: Vec<String>,
    user_spoke: bool,
    tools_spoke: bool,
    said_by_user: HashSet<String>,
    said_by_tools: HashSet<String>,
    /// Tools said more than can be looked through.
    tools_said_more: bool,
    /// The last message of the conversation.
    pub last: Option<String>,
}

impl Dialogue {
    /// What came after the message `watermark`; everything where nothing was learned before. Where that message is gone, with an
    /// answer that was given anew, what the user said last is new. Of what was said before `forgotten` nothing is left.
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
                .or_else(|| messages.iter().rposition(is_users))
                .unwrap_or(messages.len())
        });
        let mut new = &messages[from.unwrap_or(0)..];
        if let Some(forgotten) = forgotten {
            let first = new.iter().position(|message| {
                message.is_human() && said_at(message).is_some_and(|at| at > forgotten)
            });
            new = &new[first.unwrap_or(new.len())..];
        }
        let mut dialogue = Self {
            last: messages.last().and_then(|message| message.id.clone()),
            ..Self::default()
        };
        dialogue.hear(new);
        dialogue.weigh(messages);
        dialogue
    }

    /// Takes down what the two said to each other.
    fn hear(&mut self, new: &[Message]) {
        // The answer to something that is no conversation is none either.
        let mut answers_nothing = false;
        for message in new {
            if message.tool_call_id().is_some() {
                self.tools_spoke = true;
            } else if is_users(message) {
                let text = own_words(message);
                answers_nothing = text.trim().is_empty();
                if !answers_nothing {
                    self.user_spoke = true;
                    self.lines.push(format!("User: {}", shortened(&text)));
                }
            } else if message.is_ai()
                && message.tool_calls().is_empty()
                && !answers_nothing
                && !message.flag(kwargs::ERROR_FALLBACK)
            {
                let text = message.content.text();
                if !text.trim().is_empty() {
                    self.lines.push(format!("Assistant: {}", shortened(&text)));
                }
            }
        }
        self.lines
            .drain(..self.lines.len().saturating_sub(MOST_LINES));
    }

    /// Takes down whose words are whose, in the whole conversation: what a tool said long ago may be taken up at any time.
    fn weigh(&mut self, messages: &[Message]) {
        let mut tool_letters = 0;
        for message in messages.iter().rev() {
            if message.tool_call_id().is_some() {
                let text = message.content.text();
                tool_letters += text.len();
                if tool_letters > MOST_TOOL_LETTERS {
                    self.tools_said_more = true;
                } else {
                    self.said_by_tools.extend(telling_words(&text));
                }
            } else if is_users(message) {
                self.said_by_user.extend(telling_words(&own_words(message)));
            }
        }
    }

    /// Whether the user said anything.
    pub fn is_empty(&self) -> bool {
        !self.user_spoke
    }

    /// Whether tools had any part in what is new.
    pub(super) fn has_tools(&self) -> bool {
        self.tools_spoke
    }

    /// The conversation as text.
    pub(super) fn text(&self) -> String {
        self.lines.join("\n")
    }

    /// Whether what a text adds to `known` is made of words that tools have said more than of the user's: then it may be a
    /// stranger's, whoever is said to have told it.
    pub(super) fn comes_from_tools(&self, text: &str, known: &str) -> bool {
        let known: HashSet<String> = telling_words(known).collect();
        let new: HashSet<String> = telling_words(text)
            .filter(|word| !known.contains(word))
            .collect();
        let by_user = new
            .iter()
            .filter(|word| self.said_by_user.contains(*word))
            .count();
        let by_tools = new
            .iter()
            .filter(|word| self.said_by_tools.contains(*word) && !self.said_by_user.contains(*word))
            .count();
        // Where not all that tools said is known, only the user's own words count.
        if self.tools_said_more {
            by_user < new.len()
        } else {
            by_tools > 2 * by_user
        }
    }
}

/// When a message of the user arrived.
fn said_at(message: &Message) -> Option<DateTime<Utc>> {
    let stamp = message.additional_kwargs.get(kwargs::TIMESTAMP)?.as_str()?;
    Some(DateTime::parse_from_rfc3339(stamp).ok()?.to_utc())
}

/// Whether the user wrote it, and not the framework in the user's place.
fn is_users(message: &Message) -> bool {
    let answers = message
        .additional_kwargs
        .contains_key(kwargs::HUMAN_INPUT_RESPONSE);
    let framework = message.name.as_deref() == Some("summary")
        || (message.flag(kwargs::HIDE_FROM_UI) && !answers);
    message.is_human() && !framework
}

/// The longer words of a text, and every two letters of scripts that have no spaces between words.
fn telling_words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|letter: char| !letter.is_alphanumeric())
        .flat_map(|word| {
            let letters: Vec<char> = word.chars().flat_map(char::to_lowercase).collect();
            let pieces = if letters.iter().any(|letter| *letter >= FIRST_WIDE) {
                2
            } else {
                letters.len().max(TELLING_LETTERS)
            };
            letters
                .windows(pieces)
                .map(|piece| piece.iter().collect())
                .collect::<Vec<String>>()
        })
}

/// At most so much of a message. Its further lines are set in, so that none of them passes for what somebody else said.
fn shortened(text: &str) -> String {
    let text = &text.replace('\n', "\n  ");
    let letters = text.chars().count();
    if letters <= MOST_LETTERS {
        return text.to_owned();
    }
    let half = MOST_LETTERS / 2;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(letters - half).collect();
    format!("{head} [...] {tail}")
}

#[cfg(test)]
#[path = "dialogue_tests.rs"]
mod tests;

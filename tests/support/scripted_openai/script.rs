//! Directive language: instructions of one user message to the scripted model.

use std::time::Duration;

pub use super::directive::{Call, Failure, Hold, Pace, ScriptError, Usage};
use super::directive::{Directive, failure, hold, leading_number, pace, usage};

/// Text of the final answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FinalText {
    /// `then say TEXT`.
    Given(String),
    /// No text was given: the user's text is echoed.
    Echo(String),
    /// The message held directives only.
    Done,
}

/// Parsed user message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// Assistant turns that call tools, in order; the final answer follows them.
    pub steps: Vec<Vec<Call>>,
    /// Text of the final answer.
    pub say: FinalText,
    /// Reasoning sent before the final text.
    pub think: Option<String>,
    /// Pace of the final text.
    pub slow: Option<Pace>,
    /// Position where the final text stops until the test releases it.
    pub hold: Option<Hold>,
    /// Wait before the first byte of every turn.
    pub delay: Duration,
    /// HTTP error on the final turn.
    pub failure: Option<Failure>,
    /// Drop the connection after this many pieces of the final text.
    pub cut: Option<usize>,
    /// Final turn: headers, then never a byte.
    pub hang: bool,
    /// Final turn: a chunk that is not JSON in the middle.
    pub garbage: bool,
    /// Tool-call arguments one character per chunk.
    pub frag: bool,
    /// `finish_reason` of the final turn.
    pub stop: Option<String>,
    /// Reported token counts.
    pub usage: Option<Usage>,
}

impl Script {
    /// Parses the directives of `text`.
    ///
    /// A `[[` without an end is plain text: auxiliary prompts quote truncated text of the user.
    ///
    /// # Errors
    /// Returns an error if a directive is unknown or its argument is malformed.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let mut script = Self::silent();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(open) = rest.find("[[") {
            let body = &rest[open + 2..];
            let Some((directive, length)) = Directive::read(body)? else {
                break;
            };
            plain.push_str(&rest[..open]);
            plain.push(' ');
            script.apply(directive)?;
            rest = &body[length..];
        }
        plain.push_str(rest);
        script.say = FinalText::from_words(&plain.split_whitespace().collect::<Vec<_>>().join(" "));
        Ok(script)
    }

    /// Returns the pieces of the final text as they are streamed; never empty.
    #[must_use]
    pub fn pieces(&self) -> Vec<String> {
        match (&self.say, self.slow) {
            (FinalText::Given(text), Some(pace)) => {
                let letters: Vec<char> = text.chars().collect();
                let size = letters.len().div_ceil(pace.pieces.max(1)).max(1);
                letters
                    .chunks(size)
                    .map(|piece| piece.iter().collect())
                    .collect()
            }
            (_, Some(pace)) => (0..pace.pieces.max(1))
                .map(|k| format!("tok{k} "))
                .collect(),
            (say, None) => words(&say.text()),
        }
    }

    fn silent() -> Self {
        Self {
            steps: Vec::new(),
            say: FinalText::Done,
            think: None,
            slow: None,
            hold: None,
            delay: Duration::ZERO,
            failure: None,
            cut: None,
            hang: false,
            garbage: false,
            frag: false,
            stop: None,
            usage: None,
        }
    }

    fn apply(&mut self, directive: Directive<'_>) -> Result<(), ScriptError> {
        match directive {
            Directive::Calls(calls) => self.steps.push(calls),
            Directive::Word { word, argument } => {
                let wrong = |expected| ScriptError::Argument {
                    directive: format!("{word} {argument}").trim_end().to_owned(),
                    expected,
                };
                match word {
                    "slow" => {
                        self.slow = Some(pace(argument).ok_or_else(|| {
                            wrong("PIECESxMILLISECONDS such as 50x20ms, at most 100000 pieces")
                        })?)
                    }
                    "delay" => {
                        let wait = leading_number(argument).ok_or_else(|| wrong("milliseconds"))?;
                        self.delay = Duration::from_millis(wait);
                    }
                    "think" | "stop" if argument.is_empty() => return Err(wrong("a text")),
                    "think" => self.think = Some(argument.to_owned()),
                    "error" => {
                        let failure = failure(argument).ok_or_else(|| {
                            wrong("a status from 400 to 599, optionally times=N and after=SECONDS")
                        })?;
                        self.failure = Some(failure);
                    }
                    "hold" => {
                        self.hold = Some(
                            hold(argument)
                                .ok_or_else(|| wrong("a number of pieces, optionally a word"))?,
                        )
                    }
                    "cut" => {
                        self.cut = Some(argument.parse().map_err(|_| wrong("a number of pieces"))?)
                    }
                    "stop" => self.stop = Some(argument.to_owned()),
                    "usage" => {
                        self.usage = Some(usage(argument).ok_or_else(|| {
                            wrong("PROMPT,COMPLETION token counts, optionally cached ones")
                        })?)
                    }
                    "hang" => self.hang = true,
                    "garbage" => self.garbage = true,
                    "frag" => self.frag = true,
                    _ => return Err(ScriptError::Unknown(word.to_owned())),
                }
            }
        }
        Ok(())
    }
}

impl FinalText {
    fn from_words(plain: &str) -> Self {
        const MARKER: &str = "then say ";
        let marker = plain
            .match_indices(MARKER)
            .find(|(at, _)| !plain[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_'));
        match marker {
            Some((at, _)) => Self::Given(plain[at + MARKER.len()..].to_owned()),
            None if plain.is_empty() => Self::Done,
            None => Self::Echo(plain.to_owned()),
        }
    }

    /// Returns the whole text.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Given(text) => text.clone(),
            Self::Echo(words) => format!("Echo: {words}"),
            Self::Done => "done".to_owned(),
        }
    }
}

/// Splits a text into words with their following blanks.
pub(super) fn words(text: &str) -> Vec<String> {
    text.split_inclusive(' ').map(str::to_owned).collect()
}

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;

//! Directive language: instructions of one user message to the scripted model.

use std::{str::FromStr, time::Duration};

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

/// Maximum number of pieces of one answer; more are a typing error.
const MAX_PIECES: usize = 100_000;

/// Tool call that the model makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The tool's name.
    pub tool: String,
    /// The argument text, sent unchanged; JSON unless the directive was `rawtool`.
    pub arguments: String,
    /// `true` if the tool is called although it is not offered.
    pub ghost: bool,
}

/// `[[slow 50x20ms]]`: this many pieces, this far apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Number of text pieces.
    pub pieces: usize,
    /// Pause after each piece.
    pub gap: Duration,
}

/// `[[hold 3 WORD]]`: the final text stops until the test releases it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// Number of pieces before the stop.
    pub after: usize,
    /// Word that releases the answer; empty if it has none.
    pub word: String,
}

/// `[[error 429 times=2 after=60]]`: an HTTP error in place of the final answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// The HTTP status.
    pub status: u16,
    /// Number of failing tries; `None` for all.
    pub times: Option<u32>,
    /// Seconds of `Retry-After`; `None` means 0 for statuses that permit a retry, else no header.
    pub after: Option<u32>,
}

/// `[[usage 11,7,4]]`: the reported token counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Prompt tokens.
    pub prompt: u64,
    /// Completion tokens.
    pub completion: u64,
    /// Prompt tokens from the provider's cache.
    pub cached: Option<u64>,
}

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

/// Invalid directive.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// The directive's name is unknown.
    #[error("unknown directive [[{0}]]")]
    Unknown(String),
    /// The directive's argument is invalid.
    #[error("directive [[{directive}]] expects {expected}")]
    Argument {
        /// The directive as written.
        directive: String,
        /// The expected form.
        expected: &'static str,
    },
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
                            wrong("a status from 400 to 599, then maybe times=N, after=SECONDS")
                        })?;
                        self.failure = Some(failure);
                    }
                    "hold" => {
                        self.hold = Some(
                            hold(argument)
                                .ok_or_else(|| wrong("a number of pieces, then maybe a word"))?,
                        )
                    }
                    "cut" => {
                        self.cut = Some(argument.parse().map_err(|_| wrong("a number of pieces"))?)
                    }
                    "stop" => self.stop = Some(argument.to_owned()),
                    "usage" => {
                        self.usage = Some(usage(argument).ok_or_else(|| {
                            wrong("PROMPT,COMPLETION token counts, then maybe cached ones")
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
        const CUE: &str = "then say ";
        let cue = plain
            .match_indices(CUE)
            .find(|(at, _)| !plain[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_'));
        match cue {
            Some((at, _)) => Self::Given(plain[at + CUE.len()..].to_owned()),
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

enum Directive<'a> {
    Calls(Vec<Call>),
    Word { word: &'a str, argument: &'a str },
}

#[derive(Deserialize)]
struct ListedCall {
    name: String,
    args: Option<Box<RawValue>>,
}

impl<'a> Directive<'a> {
    /// Parses the text after `[[` and returns its length including `]]`; `None` if it has no end.
    fn read(body: &'a str) -> Result<Option<(Self, usize)>, ScriptError> {
        if let Some(list) = body.strip_prefix("tools:") {
            let listed =
                json_prefix::<Vec<ListedCall>>(list, "tools", "a JSON list of {name, args}")?;
            let Some((calls, used)) = listed else {
                return Ok(None);
            };
            let calls = calls.into_iter().map(|call| Call {
                tool: call.name,
                arguments: call
                    .args
                    .map_or_else(|| "{}".to_owned(), |args| args.get().to_owned()),
                ghost: false,
            });
            return Ok(closed(
                Self::Calls(calls.collect()),
                body,
                "tools:".len() + used,
            ));
        }
        for prefix in ["tool:", "rawtool:", "ghost:"] {
            if let Some(named) = body.strip_prefix(prefix) {
                return Self::read_call(body, prefix, named);
            }
        }
        let Some(end) = body.find("]]") else {
            return Ok(None);
        };
        let (word, argument) = body[..end].split_once(' ').unwrap_or((&body[..end], ""));
        Ok(Some((
            Self::Word {
                word,
                argument: argument.trim(),
            },
            end + 2,
        )))
    }

    fn read_call(
        body: &'a str,
        prefix: &str,
        named: &str,
    ) -> Result<Option<(Self, usize)>, ScriptError> {
        let name_ends = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '-'));
        let Some(name_length) = named.find(name_ends) else {
            return Ok(None);
        };
        let tool = named[..name_length].to_owned();
        if tool.is_empty() {
            return Err(ScriptError::Argument {
                directive: prefix.to_owned(),
                expected: "a tool name after the colon",
            });
        }
        let tail = named[name_length..].trim_start();
        let start = body.len() - tail.len();
        let ghost = prefix == "ghost:";
        if tail.starts_with("]]") {
            let call = Call {
                tool,
                arguments: "{}".to_owned(),
                ghost,
            };
            return Ok(closed(Self::Calls(vec![call]), body, start));
        }
        let (arguments, used) = if prefix == "rawtool:" {
            let text = json_prefix::<String>(tail, &format!("{prefix}{tool}"), "a JSON string")?;
            let Some((text, used)) = text else {
                return Ok(None);
            };
            (text, used)
        } else {
            let value = json_prefix::<Value>(tail, &format!("{prefix}{tool}"), "JSON arguments")?;
            let Some((_, used)) = value else {
                return Ok(None);
            };
            (tail[..used].trim().to_owned(), used)
        };
        Ok(closed(
            Self::Calls(vec![Call {
                tool,
                arguments,
                ghost,
            }]),
            body,
            start + used,
        ))
    }
}

fn closed<'a>(directive: Directive<'a>, body: &str, from: usize) -> Option<(Directive<'a>, usize)> {
    let end = body[from..].find("]]")?;
    Some((directive, from + end + 2))
}

/// Returns the JSON value at the beginning of `text` and its length; `None` if the text ends inside
/// of it.
fn json_prefix<T: for<'de> Deserialize<'de>>(
    text: &str,
    directive: &str,
    expected: &'static str,
) -> Result<Option<(T, usize)>, ScriptError> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<T>();
    match values.next() {
        Some(Ok(value)) => Ok(Some((value, values.byte_offset()))),
        Some(Err(error)) if !error.is_eof() => Err(ScriptError::Argument {
            directive: directive.to_owned(),
            expected,
        }),
        Some(Err(_)) | None => Ok(None),
    }
}

/// Returns the number at the beginning of a text such as `20ms`.
fn leading_number<N: FromStr>(text: &str) -> Option<N> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text[..digits].parse().ok()
}

fn pace(argument: &str) -> Option<Pace> {
    let (pieces, gap) = argument.split_once('x')?;
    let pieces = pieces
        .parse()
        .ok()
        .filter(|pieces| (1..=MAX_PIECES).contains(pieces))?;
    Some(Pace {
        pieces,
        gap: Duration::from_millis(leading_number(gap)?),
    })
}

fn hold(argument: &str) -> Option<Hold> {
    let (after, word) = argument.split_once(' ').unwrap_or((argument, ""));
    Some(Hold {
        after: after.parse().ok()?,
        word: word.trim().to_owned(),
    })
}

fn failure(argument: &str) -> Option<Failure> {
    let mut words = argument.split_whitespace();
    let status = words
        .next()?
        .parse()
        .ok()
        .filter(|status| (400..600).contains(status))?;
    let mut failure = Failure {
        status,
        times: None,
        after: None,
    };
    for word in words {
        match word.split_once('=')? {
            ("times", times) => failure.times = Some(times.parse().ok()?),
            ("after", seconds) => failure.after = Some(seconds.parse().ok()?),
            _ => return None,
        }
    }
    Some(failure)
}

fn usage(argument: &str) -> Option<Usage> {
    let counts = argument
        .split(',')
        .map(|count| count.trim().parse().ok())
        .collect::<Option<Vec<u64>>>()?;
    match counts[..] {
        [prompt, completion] => Some(Usage {
            prompt,
            completion,
            cached: None,
        }),
        [prompt, completion, cached] => Some(Usage {
            prompt,
            completion,
            cached: Some(cached),
        }),
        _ => None,
    }
}

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;

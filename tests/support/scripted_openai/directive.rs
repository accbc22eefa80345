//! Syntax of one directive: its name, its argument and the tool calls in it.

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

pub(super) enum Directive<'a> {
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
    pub(super) fn read(body: &'a str) -> Result<Option<(Self, usize)>, ScriptError> {
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
pub(super) fn leading_number<N: FromStr>(text: &str) -> Option<N> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text[..digits].parse().ok()
}

pub(super) fn pace(argument: &str) -> Option<Pace> {
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

pub(super) fn hold(argument: &str) -> Option<Hold> {
    let (after, word) = argument.split_once(' ').unwrap_or((argument, ""));
    Some(Hold {
        after: after.parse().ok()?,
        word: word.trim().to_owned(),
    })
}

pub(super) fn failure(argument: &str) -> Option<Failure> {
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

pub(super) fn usage(argument: &str) -> Option<Usage> {
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

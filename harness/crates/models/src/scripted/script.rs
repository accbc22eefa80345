//! Parses the directive language of the scripted model. Pure; depends on neither tools nor time.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

/// Maximum number of pieces of an answer. A larger number is a mistake.
const MAX_PIECES: usize = 100_000;
/// Maximum wait (ten minutes). A longer one is a mistake.
const MAX_WAIT_MS: u64 = 600_000;

/// Tool call of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScriptedCall {
    /// Name of the tool.
    pub(super) tool: String,
    /// Argument text. JSON unless the directive was `rawtool`.
    pub(super) arguments: String,
}

/// Directive `[[error 429 times=2]]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Failure {
    /// HTTP status of the error.
    pub(super) status: u16,
    /// Number of attempts that fail. `None` means all.
    pub(super) times: Option<u32>,
}

/// Directive `[[slow 50x20ms]]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pace {
    /// Number of text pieces.
    pub(super) pieces: usize,
    /// Pause after each piece.
    pub(super) gap: Duration,
}

/// Parsed user message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Script {
    /// Turns that call tools, in order. The final answer follows them.
    pub(super) steps: Vec<Vec<ScriptedCall>>,
    /// The text after `then say`.
    pub(super) say: Option<String>,
    /// Text of the message without its directives.
    pub(super) plain_text: String,
    /// `true` if the message contains a directive.
    pub(super) directed: bool,
    /// Reasoning before the final text.
    pub(super) think: Option<String>,
    /// Pace of the final text.
    pub(super) slow: Option<Pace>,
    /// Wait before each turn.
    pub(super) delay: Duration,
    /// Error instead of the final answer.
    pub(super) failure: Option<Failure>,
    /// Number of pieces after which the final text is truncated.
    pub(super) cut: Option<usize>,
    /// `true` if the final answer never arrives.
    pub(super) hang: bool,
    /// `true` if the stream becomes invalid in the middle of the final text.
    pub(super) garbage: bool,
    /// `true` if tool arguments are sent one character at a time.
    pub(super) frag: bool,
    /// `finish_reason` of the final turn.
    pub(super) stop: Option<String>,
    /// Prompt and completion tokens to report.
    pub(super) usage: Option<(u64, u64)>,
}

/// Error: a known directive has an invalid argument.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the directive [[{directive}]] needs {expected}")]
pub(super) struct ScriptError {
    /// Directive as written, truncated.
    directive: String,
    /// Expected argument.
    expected: &'static str,
}

impl Script {
    /// Parses `text`. Double brackets that contain no known directive or never close are ordinary
    /// text, because auxiliary prompts may quote truncated user text.
    pub(super) fn parse(text: &str) -> Result<Self, ScriptError> {
        let mut script = Self::default();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(open) = rest.find("[[") {
            let body = &rest[open + 2..];
            match script.directive(body)? {
                Some(length) => {
                    script.directed = true;
                    plain.push_str(&rest[..open]);
                    rest = &body[length..];
                }
                None => {
                    plain.push_str(&rest[..open + 2]);
                    rest = body;
                }
            }
        }
        plain.push_str(rest);
        if let Some((_, text)) = split_at_phrase(&plain, "then say ") {
            script.say = Some(text.trim().to_owned());
        }
        script.plain_text = plain.trim().to_owned();
        Ok(script)
    }

    /// Applies the directive at the start of `body`. Returns its length including `]]`, or `None`
    /// if it is no directive.
    fn directive(&mut self, body: &str) -> Result<Option<usize>, ScriptError> {
        if let Some(tail) = body.strip_prefix("tools:") {
            return self.tool_directive(body, tail, |json| {
                let calls: Vec<NamedCall> = serde_json::from_value(json).ok()?;
                Some(calls.into_iter().map(ScriptedCall::from).collect())
            });
        }
        for (prefix, raw) in [("tool:", false), ("rawtool:", true)] {
            if let Some(tail) = body.strip_prefix(prefix) {
                let name_end = tail
                    .find(|c: char| !(c.is_alphanumeric() || "_-.".contains(c)))
                    .unwrap_or(tail.len());
                let (name, tail) = tail.split_at(name_end);
                return self.tool_directive(body, tail, |json| {
                    let arguments = match (raw, json) {
                        (true, Value::String(text)) => text,
                        (false, object @ Value::Object(_)) => object.to_string(),
                        (false, Value::Null) => "{}".to_owned(),
                        _ => return None,
                    };
                    (!name.is_empty()).then(|| {
                        vec![ScriptedCall {
                            tool: name.to_owned(),
                            arguments,
                        }]
                    })
                });
            }
        }
        let Some(end) = body.find("]]") else {
            return Ok(None);
        };
        let (word, argument) = body[..end]
            .split_once(char::is_whitespace)
            .unwrap_or((&body[..end], ""));
        let recognized = self
            .word_directive(word, argument.trim())
            .map_err(|expected| ScriptError::new(&body[..end], expected))?;
        Ok(recognized.then_some(end + 2))
    }

    /// Parses the JSON value at the start of `tail` (an empty one counts as null) and the closing
    /// brackets after it.
    fn tool_directive(
        &mut self,
        body: &str,
        tail: &str,
        understand: impl FnOnce(Value) -> Option<Vec<ScriptedCall>>,
    ) -> Result<Option<usize>, ScriptError> {
        if !body.contains("]]") {
            return Ok(None);
        }
        let written = || body.split("]]").next().unwrap_or_default();
        let refuse = |expected| ScriptError::new(written(), expected);
        let (json, used) = if tail.trim_start().starts_with("]]") {
            (Value::Null, 0)
        } else {
            let mut values = serde_json::Deserializer::from_str(tail).into_iter::<Value>();
            match values.next() {
                Some(Ok(json)) => (json, values.byte_offset()),
                _ => return Err(refuse("valid JSON after the tool's name")),
            }
        };
        let after = tail[used..].trim_start();
        let Some(behind) = after.strip_prefix("]]") else {
            return Err(refuse("]] right after its JSON"));
        };
        let calls = understand(json)
            .ok_or_else(|| refuse("a tool name and an object of arguments (rawtool: a text; tools: a list of {name, args})"))?;
        self.steps.push(calls);
        Ok(Some(body.len() - behind.len()))
    }

    /// Applies a one-word directive. Returns `false` if the word is unknown. The error is the
    /// expected argument.
    fn word_directive(&mut self, word: &str, argument: &str) -> Result<bool, &'static str> {
        match word {
            "slow" => {
                self.slow = Some(pace(argument).ok_or("pieces and a pause, such as 50x20ms")?)
            }
            "delay" => self.delay = millis(argument).ok_or("milliseconds, at most 600000")?,
            "think" if !argument.is_empty() => self.think = Some(argument.to_owned()),
            "error" => {
                self.failure = Some(
                    failure(argument)
                        .ok_or("an HTTP status of 400 or more, such as 500 or 429 times=2")?,
                )
            }
            "cut" => self.cut = Some(argument.parse().map_err(|_| "a number of pieces")?),
            "hang" => self.hang = true,
            "garbage" => self.garbage = true,
            "frag" => self.frag = true,
            "stop" if !argument.is_empty() => self.stop = Some(argument.to_owned()),
            "usage" => self.usage = Some(usage(argument).ok_or("two token counts, such as 11,7")?),
            "think" | "stop" => return Err("a text"),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl ScriptError {
    fn new(directive: &str, expected: &'static str) -> Self {
        Self {
            directive: directive.chars().take(120).collect(),
            expected,
        }
    }
}

#[derive(Deserialize)]
struct NamedCall {
    name: String,
    #[serde(default)]
    args: Map<String, Value>,
}

impl From<NamedCall> for ScriptedCall {
    fn from(call: NamedCall) -> Self {
        Self {
            tool: call.name,
            arguments: Value::Object(call.args).to_string(),
        }
    }
}

/// Splits at the first occurrence of `phrase` that does not start inside another word.
fn split_at_phrase<'a>(text: &'a str, phrase: &str) -> Option<(&'a str, &'a str)> {
    text.match_indices(phrase)
        .find(|(at, _)| {
            !text[..*at]
                .chars()
                .next_back()
                .is_some_and(char::is_alphanumeric)
        })
        .map(|(at, found)| (&text[..at], &text[at + found.len()..]))
}

fn millis(text: &str) -> Option<Duration> {
    let millis: u64 = text.strip_suffix("ms").unwrap_or(text).parse().ok()?;
    (millis <= MAX_WAIT_MS).then(|| Duration::from_millis(millis))
}

fn pace(text: &str) -> Option<Pace> {
    let (pieces, gap) = text.split_once('x')?;
    let pieces = pieces
        .parse()
        .ok()
        .filter(|pieces| (1..=MAX_PIECES).contains(pieces))?;
    Some(Pace {
        pieces,
        gap: millis(gap)?,
    })
}

fn failure(text: &str) -> Option<Failure> {
    let (status, times) = match text.split_once(char::is_whitespace) {
        Some((status, times)) => (
            status,
            Some(times.trim().strip_prefix("times=")?.parse().ok()?),
        ),
        None => (text, None),
    };
    let status = status
        .parse()
        .ok()
        .filter(|status| (400..=599).contains(status))?;
    Some(Failure { status, times })
}

fn usage(text: &str) -> Option<(u64, u64)> {
    let (input, output) = text.split_once(',')?;
    Some((input.trim().parse().ok()?, output.trim().parse().ok()?))
}

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;

//! Rules of the strictest servers for a conversation, checked against the requests of every wire.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{Endpoint, ProviderDefaults, Wire};
use crate::anthropic::Messages;
use crate::gemini::GenerateContent;
use crate::ollama::Chat;
use crate::openai::{ChatCompletions, Dialect};
use crate::responses::Responses;
use crate::{ModelEntry, ModelRequest};

/// Result of a check. The error states why a server rejects the request.
type Refusal = Result<(), String>;
type Sends = Box<dyn Fn(&ModelRequest) -> Value + Send + Sync>;

/// Wire with the rules of its servers.
pub struct StrictServer {
    name: &'static str,
    sends: Sends,
    rules: fn(&Value) -> Refusal,
}

/// Returns a server for each wire and dialect.
pub fn strict_servers() -> Vec<StrictServer> {
    let chat = |name, dialect: Dialect| {
        server(
            name,
            move |entry: &ModelEntry| ChatCompletions::of(entry, dialect),
            chat_rules,
        )
    };
    let defaults = ProviderDefaults {
        base_url: Some("https://h.test/v1"),
        allows_anonymous: true,
        key_names: &["api_key"],
        key_variable: "NONE",
    };
    vec![
        chat("openai", Dialect::OPENAI),
        server(
            "anthropic",
            |entry| Messages::of(entry, true),
            anthropic_rules,
        ),
        server("gemini", GenerateContent::of, gemini_rules),
        server(
            "responses",
            move |entry| Responses::of(entry, defaults),
            responses_rules,
        ),
        server("ollama", Chat::of, ollama_rules),
        chat("deepseek", Dialect::DEEPSEEK),
        chat("kimi", Dialect::KIMI),
        chat("minimax", Dialect::MINIMAX),
        chat("mindie", Dialect::MINDIE),
    ]
}

fn server<W: Wire>(
    name: &'static str,
    wire: impl Fn(&ModelEntry) -> Result<(W, Endpoint), String>,
    rules: fn(&Value) -> Refusal,
) -> StrictServer {
    let extra = Map::from_iter([("base_url".to_owned(), "https://h.test/v1".into())]);
    let entry = ModelEntry {
        api_key: Some("key".into()),
        extra,
        ..ModelEntry::new("e", name, "model-x")
    };
    let (wire, endpoint) = wire(&entry).expect("a wire");
    let sends = move |request: &ModelRequest| {
        let settings: Map<String, Value> = entry.settings_for(request).expect("settings");
        wire.call(request, &settings, &endpoint, None)
            .body
            .to_value()
    };
    StrictServer {
        name,
        sends: Box::new(sends),
        rules,
    }
}

impl StrictServer {
    /// Returns why the server rejects the request, with the request, or `None` if it accepts it.
    pub fn refusal(&self, request: &ModelRequest) -> Option<String> {
        let body = (self.sends)(request);
        (self.rules)(&body)
            .err()
            .map(|why| format!("{}: {why}\n{body:#}", self.name))
    }
}

fn list<'a>(body: &'a Value, key: &str) -> Result<&'a Vec<Value>, String> {
    body[key]
        .as_array()
        .ok_or_else(|| format!("{key} is not a list"))
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str, String> {
    value[key]
        .as_str()
        .filter(|text| !text.is_empty())
        .ok_or_else(|| format!("{key} is not a text: {value}"))
}

fn require(holds: bool, why: impl FnOnce() -> String) -> Refusal {
    if holds { Ok(()) } else { Err(why()) }
}

/// Checks the name of a function.
fn function_name(name: &str) -> Refusal {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    require(
        name.len() <= 64 && !name.is_empty() && name.bytes().all(plain),
        || format!("{name:?} is not a valid function name"),
    )
}

/// Checks that the arguments are a JSON object.
fn arguments(text: &str) -> Refusal {
    require(
        serde_json::from_str::<Map<String, Value>>(text).is_ok(),
        || format!("arguments are not an object: {text}"),
    )
}

/// Checks that results directly follow their calls, that each call has one result, and that each
/// result has a call.
fn chat_rules(body: &Value) -> Refusal {
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in list(body, "messages")?.iter().enumerate() {
        let role = text(message, "role")?;
        if role == "tool" {
            let id = text(message, "tool_call_id")?;
            let position = open
                .iter()
                .position(|waiting| *waiting == id)
                .ok_or_else(|| format!("result {id} at {at} has no call"))?;
            open.remove(position);
            require(!message["content"].is_null(), || {
                format!("result {id} has no content")
            })?;
            continue;
        }
        require(open.is_empty(), || {
            format!("before {at} there is no result of {open:?}")
        })?;
        let calls = message["tool_calls"].as_array();
        require(role != "system" || at == 0, || {
            format!("a system message at {at}")
        })?;
        require(calls.is_none_or(|calls| !calls.is_empty()), || {
            format!("an empty list of calls at {at}")
        })?;
        require(calls.is_some() || !message["content"].is_null(), || {
            format!("no content at {at}")
        })?;
        for call in calls.into_iter().flatten() {
            let id = text(call, "id")?;
            require(!open.contains(&id), || format!("two calls {id} at {at}"))?;
            open.push(id);
            function_name(text(&call["function"], "name")?)?;
            arguments(text(&call["function"], "arguments")?)?;
        }
    }
    require(open.is_empty(), || {
        format!("there is no result of {open:?}")
    })
}

/// Checks that turns alternate and begin with the user, and that all results of a turn's calls come
/// first in the next turn.
fn anthropic_rules(body: &Value) -> Refusal {
    let (mut called, mut ids): (Vec<&str>, HashSet<&str>) = (Vec::new(), HashSet::new());
    for (at, turn) in list(body, "messages")?.iter().enumerate() {
        let role = text(turn, "role")?;
        require(
            role == if at % 2 == 0 { "user" } else { "assistant" },
            || format!("turn {at} is the {role}'s"),
        )?;
        let blocks = list(turn, "content")?;
        require(!blocks.is_empty(), || format!("turn {at} is empty"))?;
        let results: Vec<&str> = blocks
            .iter()
            .take_while(|block| block["type"] == "tool_result")
            .filter_map(|block| block["tool_use_id"].as_str())
            .collect();
        let mut missing = called.clone();
        for result in &results {
            let position = missing
                .iter()
                .position(|id| id == result)
                .ok_or_else(|| format!("result {result} at {at} has no call"))?;
            missing.remove(position);
        }
        require(missing.is_empty(), || {
            format!("turn {at} has no result of {missing:?}")
        })?;
        called.clear();
        for block in blocks.iter().skip(results.len()) {
            match text(block, "type")? {
                "text" => require(!text(block, "text")?.trim().is_empty(), || {
                    format!("blank text at {at}")
                })?,
                "tool_use" => {
                    let id = text(block, "id")?;
                    require(ids.insert(id), || format!("the call {id} is there twice"))?;
                    called.push(id);
                    function_name(text(block, "name")?)?;
                    require(block["input"].is_object(), || {
                        format!("the input of {id} is no object")
                    })?;
                }
                "tool_result" => return Err(format!("a result behind other blocks at {at}")),
                _ => {}
            }
        }
    }
    require(called.is_empty(), || {
        format!("there is no result of {called:?}")
    })
}

/// Checks that turns alternate and begin with the user, and that each turn with calls is followed
/// by as many responses, by name and in order.
fn gemini_rules(body: &Value) -> Refusal {
    let mut called: Vec<&str> = Vec::new();
    for (at, turn) in list(body, "contents")?.iter().enumerate() {
        let role = text(turn, "role")?;
        require(role == if at % 2 == 0 { "user" } else { "model" }, || {
            format!("turn {at} is the {role}'s")
        })?;
        let parts = list(turn, "parts")?;
        require(!parts.is_empty(), || format!("turn {at} is empty"))?;
        let names = |key: &str| {
            parts
                .iter()
                .filter_map(|part| part.get(key)?["name"].as_str())
                .collect::<Vec<_>>()
        };
        let answered = names("functionResponse");
        require(answered == called, || {
            format!("turn {at} answers {answered:?}, called were {called:?}")
        })?;
        called = names("functionCall");
        called.iter().try_for_each(|name| function_name(name))?;
    }
    require(called.is_empty(), || format!("nothing answers {called:?}"))
}

/// Checks that each call has one output, before any other item.
fn responses_rules(body: &Value) -> Refusal {
    let (mut open, mut ids): (Vec<&str>, HashSet<&str>) = (Vec::new(), HashSet::new());
    for item in list(body, "input")? {
        match item["type"].as_str().unwrap_or("message") {
            "function_call" => {
                let id = text(item, "call_id")?;
                require(ids.insert(id), || format!("the call {id} is there twice"))?;
                function_name(text(item, "name")?)?;
                arguments(text(item, "arguments")?)?;
                open.push(id);
            }
            "function_call_output" => {
                let id = text(item, "call_id")?;
                let position = open
                    .iter()
                    .position(|waiting| *waiting == id)
                    .ok_or_else(|| format!("output {id} has no call"))?;
                open.remove(position);
            }
            _ => require(open.is_empty(), || {
                format!("there is no output of {open:?}")
            })?,
        }
    }
    require(open.is_empty(), || {
        format!("there is no output of {open:?}")
    })
}

/// Checks that an answer is followed by as many results as it has calls.
fn ollama_rules(body: &Value) -> Refusal {
    let mut open = 0;
    for (at, message) in list(body, "messages")?.iter().enumerate() {
        if text(message, "role")? == "tool" {
            require(open > 0, || format!("the result at {at} has no call"))?;
            open -= 1;
            continue;
        }
        require(open == 0, || {
            format!("before {at} there are {open} results missing")
        })?;
        let calls = message["tool_calls"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        for call in calls {
            text(&call["function"], "name")?;
            require(call["function"]["arguments"].is_object(), || {
                format!("arguments at {at} are no object")
            })?;
        }
        open = calls.len();
    }
    require(open == 0, || format!("{open} results are missing"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strict_server_rejects_unpaired_calls() {
        let call = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]});
        let result = json!({"role": "tool", "tool_call_id": "a", "content": ""});
        let chat = |messages: &[&Value]| chat_rules(&json!({ "messages": messages })).is_ok();
        assert!(chat(&[&call, &result]));
        assert!(
            !chat(&[&call])
                && !chat(&[&result])
                && !chat(&[&call, &call, &result, &result])
                && !chat(&[&call, &result, &result])
        );
        let turn = |role: &str, block: Value| json!({"role": role, "content": [block]});
        let (asks, calls) = (
            turn("user", json!({"type": "text", "text": "q"})),
            json!({"type": "tool_use", "id": "a", "name": "f", "input": {}}),
        );
        let (calls, answers) = (
            turn("assistant", calls),
            turn("user", json!({"type": "tool_result", "tool_use_id": "a"})),
        );
        let anthropic = |turns: &[&Value]| anthropic_rules(&json!({ "messages": turns })).is_ok();
        assert!(anthropic(&[&asks, &calls, &answers]));
        assert!(
            !anthropic(&[&asks, &calls])
                && !anthropic(&[&answers])
                && !anthropic(&[&asks, &calls, &asks])
                && !anthropic(&[&calls])
        );
    }
}

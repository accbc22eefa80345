//! `command` and `input`: the new input of a run, and the nodes at which it continues.

use harness::runtime::agent::{Agent, known_channels};
use harness::runtime::runs::{GotoTarget, RunInput, ThreadCommand};
use harness::state::{Channels, StateUpdate};
use serde_json::{Map, Value};

use super::state::read_values;
use super::unsupported::unsupported;
use crate::dialect::Dialect;
use crate::error::{ApiError, Issue};

/// Returns the issue of an invalid command.
pub(super) fn command_issue(command: &Map<String, Value>, dialect: Dialect) -> Option<Issue> {
    let field = |key: &str| command.get(key).filter(|value| !value.is_null());
    if let Some(goto) =
        field("goto").filter(|goto| goto.as_array().is_none_or(|nodes| !nodes.is_empty()))
    {
        if !dialect.is_platform() {
            return Some(unsupported("command.goto", goto));
        }
        if goto_targets(goto).is_none() {
            let expected = "Input should be a node name, a {node, input} object, or a list of them";
            return Some(Issue::new("value_error", location("goto"), expected, goto));
        }
    }
    let update = field("update")?;
    if command.contains_key("resume") && !dialect.is_platform() {
        return Some(unsupported("command.update", update));
    }
    let readable = update.is_object()
        || update
            .as_array()
            .is_some_and(|pairs| pairs.iter().all(is_pair));
    (!readable).then(|| {
        Issue::new(
            "dict_type",
            location("update"),
            "Input should be a valid dictionary or a list of pairs",
            update,
        )
    })
}

fn location(key: &'static str) -> Vec<Value> {
    vec!["body".into(), "command".into(), key.into()]
}

fn is_pair(value: &Value) -> bool {
    matches!(
        value.as_array().map(Vec::as_slice),
        Some([Value::String(_), _])
    )
}

/// Returns the input that a run of `agent` gets by a valid command. On the platform a command
/// changes the thread's state directly; DeerFlow's `update` is an ordinary input. Without an agent
/// the channels are the lead agent's.
pub(super) fn read_input(
    input: Option<Map<String, Value>>,
    mut command: Map<String, Value>,
    agent: Option<&dyn Agent>,
    dialect: Dialect,
) -> Result<RunInput, ApiError> {
    let resume = command.shift_remove("resume");
    let (update, goto) = change_of(command);
    let channels = agent.map_or_else(Channels::lead, Agent::channels);
    if dialect.is_platform() && (update.is_some() || !goto.is_empty()) {
        let update = read_update(
            update.unwrap_or_default(),
            &channels,
            "command.update",
            dialect,
        )?;
        return Ok(RunInput::Command(ThreadCommand {
            resume,
            update,
            goto,
        }));
    }
    let converted = |input, location| {
        let values = match agent {
            Some(agent) => agent.read_input(input),
            None => known_channels(input, &channels),
        };
        let values = values.map_err(|error| ApiError::of_input(error, location))?;
        read_update(values, &channels, location, dialect).map(RunInput::Update)
    };
    match (resume, update, input) {
        (Some(answer), _, _) => Ok(RunInput::Resume(answer)),
        (_, Some(update), _) => converted(update, "command.update"),
        (_, _, Some(input)) => converted(input, "input"),
        _ => Ok(RunInput::Continue),
    }
}

/// Command of a node in an external update of its values. A resume value has no effect there.
#[derive(Debug)]
pub(crate) struct NodeCommand {
    /// Channel values.
    pub(crate) update: Map<String, Value>,
    /// Nodes to go to in addition to the node's own successors.
    pub(crate) goto: Vec<GotoTarget>,
}

impl NodeCommand {
    /// Reads a command in a body, or adds its issue.
    pub(crate) fn read(command: Map<String, Value>) -> Result<Self, Box<Issue>> {
        if let Some(issue) = command_issue(&command, Dialect::Platform) {
            return Err(Box::new(issue));
        }
        let (update, goto) = change_of(command);
        Ok(Self {
            update: update.unwrap_or_default(),
            goto,
        })
    }
}

/// Reads the update and the nodes of a valid command.
fn change_of(mut command: Map<String, Value>) -> (Option<Map<String, Value>>, Vec<GotoTarget>) {
    let update = match command.shift_remove("update") {
        Some(Value::Object(update)) => Some(update),
        Some(Value::Array(pairs)) => Some(from_pairs(pairs)),
        _ => None,
    };
    let goto = command
        .shift_remove("goto")
        .and_then(|goto| goto_targets(&goto))
        .unwrap_or_default();
    (update, goto)
}

fn read_update(
    values: Map<String, Value>,
    channels: &Channels,
    location: &'static str,
    dialect: Dialect,
) -> Result<StateUpdate, ApiError> {
    let values = read_values(values, channels, location, dialect)?;
    Ok(StateUpdate {
        messages: values.messages.unwrap_or_default(),
        channels: values.channels,
    })
}

/// Reads the nodes of a `goto`: a name, a node with its own input, or a list of such. `None` for
/// any other form.
fn goto_targets(goto: &Value) -> Option<Vec<GotoTarget>> {
    match goto {
        Value::Null => Some(Vec::new()),
        Value::Array(all) => all.iter().map(visit).collect(),
        one => visit(one).map(|visit| vec![visit]),
    }
}

fn visit(value: &Value) -> Option<GotoTarget> {
    match value {
        Value::String(node) => Some(GotoTarget {
            node: node.clone(),
            input: None,
        }),
        Value::Object(send) => {
            let node = send.get("node")?.as_str()?.to_owned();
            Some(GotoTarget {
                node,
                input: send.get("input").filter(|input| !input.is_null()).cloned(),
            })
        }
        _ => None,
    }
}

fn from_pairs(pairs: Vec<Value>) -> Map<String, Value> {
    pairs
        .into_iter()
        .filter_map(|pair| match pair {
            Value::Array(pair) => <[Value; 2]>::try_from(pair).ok(),
            _ => None,
        })
        .filter_map(|[key, value]| Some((key.as_str()?.to_owned(), value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(body: Value) -> RunInput {
        let Value::Object(body) = body else {
            panic!("an object")
        };
        let command = body
            .get("command")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        assert!(command_issue(&command, Dialect::Platform).is_none());
        let input = body.get("input").and_then(Value::as_object).cloned();
        read_input(input, command, None, Dialect::Platform).unwrap()
    }

    #[test]
    fn command_is_parsed_in_all_forms() {
        let go = |node: &str, input: Option<Value>| GotoTarget {
            node: node.to_owned(),
            input,
        };
        let title = || StateUpdate::channel("title", json!("T"));
        for (command, expected) in [
            (
                json!({ "goto": "model" }),
                ThreadCommand {
                    goto: vec![go("model", None)],
                    ..ThreadCommand::default()
                },
            ),
            (
                json!({ "goto": ["model", { "node": "tools", "input": { "a": 1 } }], "update": [["title", "T"]] }),
                ThreadCommand {
                    goto: vec![go("model", None), go("tools", Some(json!({ "a": 1 })))],
                    update: title(),
                    resume: None,
                },
            ),
            (
                json!({ "resume": null, "update": { "title": "T" } }),
                ThreadCommand {
                    resume: Some(Value::Null),
                    update: title(),
                    goto: vec![],
                },
            ),
        ] {
            assert_eq!(
                read(json!({ "command": command })),
                RunInput::Command(expected)
            );
        }
        assert_eq!(
            read(json!({ "command": { "resume": null, "goto": [] } })),
            RunInput::Resume(Value::Null)
        );
        assert_eq!(
            read(json!({ "command": { "goto": null }, "input": null })),
            RunInput::Continue
        );
    }

    #[test]
    fn invalid_command_is_reported() {
        for command in [
            json!({ "goto": 1 }),
            json!({ "goto": [{ "input": 1 }] }),
            json!({ "update": 1 }),
            json!({ "update": [["a"]] }),
        ] {
            assert!(
                command_issue(command.as_object().unwrap(), Dialect::Platform).is_some(),
                "{command}"
            );
        }
    }
}

//! `command` and `input`: what is new to the thread, and where the run goes.

use harness::runtime::runs::{RunCommand, RunInput, Visit};
use harness::state::StateUpdate;
use serde_json::{Map, Value};

use super::run_spec::unsupported;
use super::state::read_values;
use crate::dialect::Dialect;
use crate::error::{ApiError, Issue};
use crate::extract::Fields;

/// What is wrong with a command, if anything is.
pub(super) fn command_issue(command: &Map<String, Value>, dialect: Dialect) -> Option<Issue> {
    let given = |key: &str| command.get(key).filter(|value| !value.is_null());
    if let Some(goto) =
        given("goto").filter(|goto| goto.as_array().is_none_or(|nodes| !nodes.is_empty()))
    {
        if !dialect.is_platform() {
            return Some(unsupported("command.goto", goto));
        }
        if visits(goto).is_none() {
            let expected = "Input should be a node name, a {node, input} object, or a list of them";
            return Some(Issue::new("value_error", place("goto"), expected, goto));
        }
    }
    let update = given("update")?;
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
            place("update"),
            "Input should be a valid dictionary or a list of pairs",
            update,
        )
    })
}

fn place(key: &'static str) -> Vec<Value> {
    vec!["body".into(), "command".into(), key.into()]
}

fn is_pair(value: &Value) -> bool {
    matches!(
        value.as_array().map(Vec::as_slice),
        Some([Value::String(_), _])
    )
}

/// The input of a run whose command has no issue. On the platform a command changes the thread where it stands; DeerFlow's
/// `update` is an input like any other.
pub(super) fn read_input(
    fields: &Fields,
    mut command: Map<String, Value>,
    dialect: Dialect,
) -> Result<RunInput, ApiError> {
    let resume = command.shift_remove("resume");
    let (update, goto) = change_of(command);
    if dialect.is_platform() && (update.is_some() || !goto.is_empty()) {
        let update = read_update(update.unwrap_or_default(), "command.update", dialect)?;
        return Ok(RunInput::Command(RunCommand {
            resume,
            update,
            goto,
        }));
    }
    match (resume, update, fields.value("input")) {
        (Some(answer), _, _) => Ok(RunInput::Resume(answer)),
        (_, Some(update), _) => {
            read_update(update, "command.update", dialect).map(RunInput::Update)
        }
        (_, _, Some(Value::Object(input))) => {
            read_update(input.clone(), "input", dialect).map(RunInput::Update)
        }
        _ => Ok(RunInput::Continue),
    }
}

/// What a node says with a command where its values are told from outside. An answer means nothing there.
#[derive(Debug)]
pub(crate) struct NodeCommand {
    /// The values.
    pub(crate) update: Map<String, Value>,
    /// Where to go besides the node's own followers.
    pub(crate) goto: Vec<Visit>,
}

impl NodeCommand {
    /// Reads a command in a body, or tells what is wrong with it.
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

/// The update and the nodes of a command that has no issue.
fn change_of(mut command: Map<String, Value>) -> (Option<Map<String, Value>>, Vec<Visit>) {
    let update = match command.shift_remove("update") {
        Some(Value::Object(update)) => Some(update),
        Some(Value::Array(pairs)) => Some(from_pairs(pairs)),
        _ => None,
    };
    let goto = command
        .shift_remove("goto")
        .and_then(|goto| visits(&goto))
        .unwrap_or_default();
    (update, goto)
}

fn read_update(
    values: Map<String, Value>,
    place: &'static str,
    dialect: Dialect,
) -> Result<StateUpdate, ApiError> {
    let values = read_values(values, place, dialect)?;
    Ok(StateUpdate {
        messages: values.messages.unwrap_or_default(),
        channels: values.channels,
    })
}

/// The nodes of a `goto`: a name, a node with an input of its own, or a list of such. None when it is something else.
fn visits(goto: &Value) -> Option<Vec<Visit>> {
    match goto {
        Value::Null => Some(Vec::new()),
        Value::Array(all) => all.iter().map(visit).collect(),
        one => visit(one).map(|visit| vec![visit]),
    }
}

fn visit(value: &Value) -> Option<Visit> {
    match value {
        Value::String(node) => Some(Visit {
            node: node.clone(),
            input: None,
        }),
        Value::Object(send) => {
            let node = send.get("node")?.as_str()?.to_owned();
            Some(Visit {
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
        read_input(&Fields::new("body", body), command, Dialect::Platform).unwrap()
    }

    #[test]
    fn a_command_is_read_in_all_its_forms() {
        let go = |node: &str, input: Option<Value>| Visit {
            node: node.to_owned(),
            input,
        };
        let title = || StateUpdate::channel("title", json!("T"));
        for (command, wanted) in [
            (
                json!({ "goto": "model" }),
                RunCommand {
                    goto: vec![go("model", None)],
                    ..RunCommand::default()
                },
            ),
            (
                json!({ "goto": ["model", { "node": "tools", "input": { "a": 1 } }], "update": [["title", "T"]] }),
                RunCommand {
                    goto: vec![go("model", None), go("tools", Some(json!({ "a": 1 })))],
                    update: title(),
                    resume: None,
                },
            ),
            (
                json!({ "resume": null, "update": { "title": "T" } }),
                RunCommand {
                    resume: Some(Value::Null),
                    update: title(),
                    goto: vec![],
                },
            ),
        ] {
            assert_eq!(
                read(json!({ "command": command })),
                RunInput::Command(wanted)
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
    fn what_is_no_command_is_named() {
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

//! Frontmatter of asset files: YAML between two lines of three dashes, then the text.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use super::manifest::{AgentAsset, Includes, TextAsset, default_adapter_kind};
use crate::schema::TurnMode;
use crate::schema::shape::{Problem, Record, Shape, check, optional, required};
use crate::schema::{OutputKind, yaml_options};

/// Maximum bytes of a frontmatter.
pub const MAX_FRONTMATTER_BYTES: usize = 64 * 1024;

static AGENT: Shape = Shape::Record(&Record {
    name: "AgentFile",
    fields: &[
        required("name", Shape::Name, "Name for people."),
        required("description", Shape::Name, "Description for people."),
        required("agentId", Shape::Name, "Id."),
        required(
            "output.kind",
            Shape::OneOf(&["text", "plan", "score"]),
            "Kind of the output.",
        ),
        optional(
            "adapterKind",
            Shape::Name,
            "Kind of the adapter; pi-mono if absent.",
        ),
        optional("model", Shape::Text, "Name of the model."),
        optional("temperature", Shape::Number(0.0, 2.0), "Temperature."),
        optional(
            "turnMode",
            Shape::OneOf(&["normal", "plan", "evaluate", "single", "multi"]),
            "Mode of turns.",
        ),
        optional(
            "tools",
            Shape::List(&Shape::Name, 0, 1_000),
            "Tools or groups of tools.",
        ),
        optional(
            "userInvocable",
            Shape::Bool,
            "Whether users may call the agent.",
        ),
        optional("argumentHint", Shape::Text, "Hint about the input."),
        optional(
            "includes",
            Shape::Record(&INCLUDES),
            "Other assets in the prompt.",
        ),
    ],
});

static INCLUDES: Record = Record {
    name: "Includes",
    fields: &[
        optional(
            "instructions",
            Shape::List(&Shape::Name, 0, 1_000),
            "Names of instructions.",
        ),
        optional(
            "skills",
            Shape::List(&Shape::Name, 0, 1_000),
            "Folders of skills.",
        ),
        optional(
            "globalSystemPrompt",
            Shape::Bool,
            "Whether the global prompt precedes.",
        ),
    ],
};

static TEXT: Shape = Shape::Record(&Record {
    name: "TextFile",
    fields: &[
        required("name", Shape::Name, "Name."),
        required("description", Shape::Name, "Description for people."),
        optional("applyTo", Shape::Text, "Reserved."),
        optional("argumentHint", Shape::Text, "Hint about the input."),
    ],
});

/// Reason why a frontmatter is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(super) struct FrontmatterError {
    /// All problems, for people.
    pub(super) message: String,
    /// Agent id, if the frontmatter states one.
    pub(super) agent_id: Option<String>,
}

/// Keys of an agent file whose defaults serde does not fill in.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AgentKeys {
    name: String,
    description: String,
    agent_id: String,
    #[serde(rename = "output.kind")]
    output_kind: OutputKind,
    adapter_kind: Option<String>,
    model: Option<String>,
    temperature: Option<f64>,
    turn_mode: Option<String>,
    #[serde(default)]
    tools: Vec<String>,
    #[serde(default)]
    user_invocable: bool,
    argument_hint: Option<String>,
    #[serde(default)]
    includes: Includes,
}

/// Parses an agent file. Returns the agent's id with the agent.
pub(super) fn agent(text: &str, path: &str) -> Result<(String, AgentAsset), FrontmatterError> {
    let (keys, body) = parse(text, &AGENT)?;
    let keys = AgentKeys::deserialize(keys).map_err(|error| problem(error.to_string()))?;
    let asset = AgentAsset {
        name: keys.name,
        description: keys.description,
        output_kind: keys.output_kind,
        adapter_kind: keys.adapter_kind.unwrap_or_else(default_adapter_kind),
        model: keys.model,
        temperature: keys.temperature,
        turn_mode: match keys.turn_mode.as_deref() {
            Some("plan") => TurnMode::Plan,
            Some("evaluate") => TurnMode::Evaluate,
            _ => TurnMode::Normal,
        },
        tools: keys.tools,
        user_invocable: keys.user_invocable,
        argument_hint: keys.argument_hint,
        includes: keys.includes,
        body,
        source_path: Some(path.to_owned()),
    };
    Ok((keys.agent_id, asset))
}

/// Parses an instruction or skill file.
pub(super) fn text_asset(text: &str, path: &str) -> Result<TextAsset, FrontmatterError> {
    let (keys, content) = parse(text, &TEXT)?;
    let key = |name: &str| keys[name].as_str().unwrap_or_default().to_owned();
    Ok(TextAsset {
        name: key("name"),
        description: key("description"),
        content,
        source_path: Some(path.to_owned()),
    })
}

/// Splits a file and checks its keys. Returns the keys and the text after them.
fn parse(text: &str, shape: &'static Shape) -> Result<(Value, String), FrontmatterError> {
    let text = unix_lines(text);
    let (yaml, body) = split(&text).ok_or_else(|| {
        problem("the file must begin with a line `---`, YAML, and another line `---`".to_owned())
    })?;
    if yaml.len() > MAX_FRONTMATTER_BYTES {
        let message = format!("the frontmatter has more than {MAX_FRONTMATTER_BYTES} bytes");
        return Err(problem(message));
    }
    let mut keys: Value = serde_saphyr::from_str_with_options(yaml, yaml_options())
        .map_err(|error| problem(first_line(&error.without_snippet().to_string())))?;
    let mut problems = Vec::new();
    check(shape, &mut keys, "", &mut |path, kind, message| {
        if kind == Problem::Invalid {
            problems.push(format!("`{}` {message}", path.trim_start_matches('/')));
        }
    });
    if problems.is_empty() {
        return Ok((keys, body.trim().to_owned()));
    }
    Err(FrontmatterError {
        message: problems.join("; "),
        agent_id: keys
            .get("agentId")
            .and_then(Value::as_str)
            .map(str::to_owned),
    })
}

/// Returns the YAML and the text after it.
fn split(text: &str) -> Option<(&str, &str)> {
    let (first, rest) = text.split_once('\n')?;
    if first.trim_end() != "---" {
        return None;
    }
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        let end = at + line.len();
        if line.trim_end() == "---" {
            return Some((&rest[..at], &rest[end..]));
        }
        at = end;
    }
    None
}

/// Removes a byte order mark and carriage returns.
pub(super) fn unix_lines(text: &str) -> Cow<'_, str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

fn problem(message: String) -> FrontmatterError {
    FrontmatterError {
        message,
        agent_id: None,
    }
}

fn first_line(text: &str) -> String {
    text.lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(300)
        .collect()
}

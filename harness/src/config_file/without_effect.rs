//! Settings of an older `config.yaml` that load and that nothing here obeys: said where they ask for something.

use std::path::Path;

use crate::config::dotted;
use serde_json::{Value, json};

use super::document::{Content, Node};
use super::error::{Origin, Problem, Warning};

/// A setting, the values with which it asks for nothing, and what to know of it otherwise. In its key `*` stands for each element of a
/// list and each name in a map. Null never asks for anything.
struct Idle {
    key: &'static [&'static str],
    values: Values,
    message: &'static str,
}

/// Values with which a setting asks for nothing.
enum Values {
    /// Everything but true.
    Off,
    /// An empty list, map or text.
    Empty,
    /// This one, as JSON: DeerFlow's default.
    Default(&'static str),
    /// Those of which this is true.
    Those(fn(&Value) -> bool),
}
use Values::{Default, Empty, Off, Those};

const fn idle(key: &'static [&'static str], values: Values, message: &'static str) -> Idle {
    Idle {
        key,
        values,
        message,
    }
}

const CHANNELS: &str = "has no effect: channels are not there yet";
const CHECKPOINTS: &str =
    "has no effect: checkpoints hold what changed, and nothing of them is cached";
const PYTHON: &str = "names Python code, which this server cannot load; it has no effect";
const ROUTING: &str = "has no effect: tools of servers are chosen by the model alone";
const TASKS: &str = "has no effect: tasks of MCP servers are called as tools";
const MEMORY_PLACE: &str = "has no effect: memories are in the database";
const SKILL_VIEW: &str = "has no effect: a summary keeps the skills that a conversation uses";

static IDLE: &[Idle] = &[
    idle(
        &["logging", "enhance"],
        Those(is_plain_log),
        "has no effect without `format: json`: lines of text are always the same",
    ),
    idle(&["plugins"], Empty, PYTHON),
    idle(&["extensions", "middlewares"], Empty, PYTHON),
    idle(&["extensions", "mcpInterceptors"], Empty, PYTHON),
    idle(
        &["extensions", "mcp_servers", "*", "routing", "mode"],
        Default("\"off\""),
        ROUTING,
    ),
    idle(
        &["extensions", "mcpServers", "*", "routing", "mode"],
        Default("\"off\""),
        ROUTING,
    ),
    idle(
        &["extensions", "mcp_servers", "*", "task_toolsets"],
        Empty,
        TASKS,
    ),
    idle(
        &["extensions", "mcpServers", "*", "task_toolsets"],
        Empty,
        TASKS,
    ),
    idle(
        &["models", "*", "output_version"],
        Empty,
        "has no effect: there is one format of answers",
    ),
    idle(&["skills", "use"], Those(is_local_storage), PYTHON),
    idle(
        &["skill_scan", "enabled"],
        Default("true"),
        "has no effect: archives of skills are always judged before they are unpacked",
    ),
    idle(
        &["skill_evolution", "enabled"],
        Off,
        "has no effect: agents do not change skills by themselves",
    ),
    idle(
        &["tool_progress", "enabled"],
        Off,
        "has no effect: see `loop_detection` for runs that do not get on",
    ),
    idle(
        &["tool_search", "auto_promote_top_k"],
        Default("3"),
        "has no effect: a search promotes what it finds",
    ),
    idle(
        &["loop_detection", "max_tracked_threads"],
        Default("100"),
        "has no effect: a run is judged by its conversation, nothing is tracked",
    ),
    idle(
        &["safety_finish_reason", "detectors"],
        Empty,
        "has no effect: the reasons that providers give are known, and no code is loaded",
    ),
    idle(
        &["scheduler", "enabled"],
        Off,
        "has no effect: scheduled tasks are not there yet; crons of the root API are",
    ),
    idle(&["mcp_tasks", "enabled"], Off, TASKS),
    idle(&["channel_connections", "enabled"], Off, CHANNELS),
    idle(&["channels", "*", "enabled"], Off, CHANNELS),
    idle(
        &["dedupe_storage", "backend"],
        Default("\"auto\""),
        CHANNELS,
    ),
    idle(
        &["auth", "oidc", "enabled"],
        Off,
        "has no effect: nobody is signed in by an identity provider yet",
    ),
    idle(
        &["auth", "local", "allow_registration"],
        Default("true"),
        "has no effect: there are no accounts to register yet",
    ),
    idle(
        &["agent_storage", "backend"],
        Default("\"file\""),
        "has no effect: custom agents are files, and agents in a database are not looked for",
    ),
    idle(
        &["sandbox", "ownership", "type"],
        Default("\"memory\""),
        "has no effect: a sandbox belongs to the run that the database gives to a node",
    ),
    idle(
        &["run_events", "track_token_usage"],
        Default("true"),
        "has no effect: the use of tokens is always tracked",
    ),
    idle(
        &["run_ownership", "grace_seconds"],
        Default("10"),
        "has no effect: a lease ends by the database's clock, after `run_ownership.lease_seconds`",
    ),
    idle(
        &["run_ownership", "heartbeat_enabled"],
        Off,
        "has no effect: leases are always renewed where processes share a database",
    ),
    idle(
        &["database", "echo_sql"],
        Off,
        "has no effect: `log_level: debug` shows what the database is asked",
    ),
    idle(
        &["database", "pool_recycle"],
        Default("300"),
        "has no effect: a connection is tried before it is used",
    ),
    idle(
        &["database", "command_timeout"],
        Default("30"),
        "has no effect: the limits of the database are built in",
    ),
    idle(
        &["database", "checkpoint_channel_mode"],
        Default("\"full\""),
        CHECKPOINTS,
    ),
    idle(
        &["database", "checkpoint_delta", "snapshot_frequency"],
        Default("10"),
        CHECKPOINTS,
    ),
    idle(
        &["database", "checkpoint_graph_cache", "accessor_graph_max"],
        Default("64"),
        CHECKPOINTS,
    ),
    idle(
        &["database", "checkpoint_cache", "type"],
        Default("\"memory\""),
        CHECKPOINTS,
    ),
    idle(
        &["database", "checkpoint_cache", "max_entries"],
        Default("128"),
        CHECKPOINTS,
    ),
    idle(
        &["database", "checkpoint_cache", "ttl_seconds"],
        Default("86400"),
        CHECKPOINTS,
    ),
    idle(
        &["database", "checkpoint_cache", "key_prefix"],
        Empty,
        CHECKPOINTS,
    ),
    idle(
        &["stream_bridge", "queue_maxsize"],
        Default("256"),
        "has no effect: streams keep whole runs",
    ),
    idle(
        &["stream_bridge", "max_connections"],
        Empty,
        "has no effect: a node has five connections to Redis",
    ),
    idle(
        &["stream_bridge", "recovered_stream_cleanup_delay_seconds"],
        Default("60"),
        "has no effect: streams are kept for `stream_bridge.stream_ttl_seconds`",
    ),
    idle(
        &["uploads", "pdf_converter"],
        Default("\"auto\""),
        "has no effect: there is one converter",
    ),
    idle(
        &["summarization", "skill_file_read_tool_names"],
        Default(r#"["read_file", "read", "view", "cat"]"#),
        "has no effect: the tools that read skills are known",
    ),
    idle(
        &["summarization", "preserve_recent_skill_count"],
        Empty,
        SKILL_VIEW,
    ),
    idle(
        &["summarization", "preserve_recent_skill_tokens"],
        Empty,
        SKILL_VIEW,
    ),
    idle(
        &["summarization", "preserve_recent_skill_tokens_per_skill"],
        Empty,
        SKILL_VIEW,
    ),
    idle(
        &["memory", "mode"],
        Default("\"middleware\""),
        "has no effect but that nothing new is remembered: agents have no tools of memory yet",
    ),
    idle(&["memory", "storage_path"], Empty, MEMORY_PLACE),
    idle(&["memory", "storage_class"], Empty, MEMORY_PLACE),
    idle(
        &["memory", "backend_config", "storage_path"],
        Empty,
        MEMORY_PLACE,
    ),
    idle(
        &["memory", "backend_config", "storage_class"],
        Empty,
        MEMORY_PLACE,
    ),
    idle(
        &["memory", "backend_config", "model"],
        Empty,
        "has no effect: memories are made by the entry of `models` that `memory.model_name` names, or by the first one",
    ),
];

fn is_plain_log(enhance: &Value) -> bool {
    is_off(&enhance["enabled"]) || enhance["format"] == "json"
}

fn is_local_storage(class: &Value) -> bool {
    class
        .as_str()
        .is_none_or(|class| class.rsplit([':', '.']).next() == Some("LocalSkillStorage"))
}

fn is_off(value: &Value) -> bool {
    *value != json!(true)
}

impl Values {
    /// Whether a setting with this value asks for something.
    fn ask(&self, value: &Value) -> bool {
        let idle = match self {
            Off => is_off(value),
            Empty => match value {
                Value::Array(items) => items.is_empty(),
                Value::Object(fields) => fields.is_empty(),
                Value::String(text) => text.is_empty(),
                _ => false,
            },
            Default(default) => {
                serde_json::from_str(default).is_ok_and(|default: Value| is_same(&default, value))
            }
            Those(are) => are(value),
        };
        !idle && !value.is_null()
    }
}

/// Whether two values are the same; numbers and truth values may come as text.
fn is_same(default: &Value, value: &Value) -> bool {
    let number = |value: &Value| value.as_f64().or_else(|| value.as_str()?.parse().ok());
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    match (number(default), number(value)) {
        (Some(default), Some(value)) => (default - value).abs() < f64::EPSILON,
        _ if default.is_array() => default == value,
        _ => text(default) == text(value),
    }
}

/// The nodes that a key leads to, each with its own path.
fn found<'a>(
    node: &'a Node,
    key: &[&str],
    path: &mut Vec<String>,
    sink: &mut impl FnMut(&[String], &'a Node),
) {
    let Some((first, rest)) = key.split_first() else {
        return sink(path, node);
    };
    let items: Vec<(String, &Node)> = match &node.content {
        Content::Map(entries) => entries
            .iter()
            .map(|entry| (entry.key.clone(), &entry.value))
            .collect(),
        Content::List(items) => items
            .iter()
            .enumerate()
            .map(|(at, item)| (at.to_string(), item))
            .collect(),
        _ => Vec::new(),
    };
    for (name, item) in items
        .into_iter()
        .filter(|(name, _)| *first == "*" || first == name)
    {
        path.push(name);
        found(item, rest, path, sink);
        path.pop();
    }
}

/// What the file asks for in vain.
pub(super) fn warnings(root: &Node, path: &Path) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for idle in IDLE {
        found(root, idle.key, &mut Vec::new(), &mut |key, node| {
            if idle.values.ask(&node.to_json()) {
                let origin = Origin::File {
                    path: path.to_owned(),
                    place: node.place,
                };
                warnings.push(Warning {
                    origin,
                    key: dotted(key),
                    message: idle.message.to_owned(),
                });
            }
        });
    }
    warnings
}

/// What would protect less than it says: a start with it would be worse than none.
pub(super) fn refusals(root: &Node, path: &Path) -> Vec<Problem> {
    let (node, whole) = root.follow(&["authorization", "enabled"]);
    let asks = whole && !is_off(&node.to_json());
    let message = "is true, but roles are not enforced here: everybody who gets in could use every tool and model. Set it to false, \
                   and see `guardrails` for rules about tools"
        .to_owned();
    let problem = || Problem {
        origin: Origin::File {
            path: path.to_owned(),
            place: node.place,
        },
        key: "authorization.enabled".to_owned(),
        message,
    };
    asks.then(problem).into_iter().collect()
}

//! Settings of older `config.yaml` files that are accepted without effect, and their warnings.

use std::path::Path;

use crate::config::dotted;

use super::document::{Content, Node};
use super::error::{Origin, Warning};
use super::inert_values::InertValues::{self, Default, Empty, Matching, Off};
use super::inert_values::is_local_storage;
use super::memory_settings;

/// Configuration key without effect. Null and the values in `values` need no warning; any other
/// value produces the warning `message`. In `key`, `*` stands for each element of a list and each
/// name in a map.
struct IneffectiveSetting {
    key: &'static [&'static str],
    values: InertValues,
    message: &'static str,
}

const fn setting(
    key: &'static [&'static str],
    values: InertValues,
    message: &'static str,
) -> IneffectiveSetting {
    IneffectiveSetting {
        key,
        values,
        message,
    }
}

const NO_CHANNEL: &str = "has no effect: this channel is not supported";
const CHECKPOINTS: &str = "has no effect: checkpoints store changes, and none of them are cached";
const PYTHON: &str = "names Python code, which this server cannot load; it has no effect";
const ROUTING: &str = "has no effect: only the model selects MCP tools";
const TASKS: &str = "has no effect: tasks of MCP servers are called as tools";
const MEMORY_STORAGE: &str = "has no effect: memories are stored in the database";
const TIMEOUTS: &str =
    "has no effect: only `timeout`, `read_timeout` and `stream_chunk_timeout` limit a call";
const SKILL_VIEW: &str =
    "has no effect: a summary always preserves the skills that a conversation uses";

static INEFFECTIVE: &[IneffectiveSetting] = &[
    setting(&["plugins"], Empty, PYTHON),
    setting(&["extensions", "middlewares"], Empty, PYTHON),
    setting(&["extensions", "mcpInterceptors"], Empty, PYTHON),
    setting(
        &["extensions", "mcp_servers", "*", "routing", "mode"],
        Default("\"off\""),
        ROUTING,
    ),
    setting(
        &["extensions", "mcpServers", "*", "routing", "mode"],
        Default("\"off\""),
        ROUTING,
    ),
    setting(
        &["extensions", "mcp_servers", "*", "task_toolsets"],
        Empty,
        TASKS,
    ),
    setting(
        &["extensions", "mcpServers", "*", "task_toolsets"],
        Empty,
        TASKS,
    ),
    setting(
        &["models", "*", "output_version"],
        Empty,
        "has no effect: there is only one answer format",
    ),
    setting(&["models", "*", "connect_timeout"], Empty, TIMEOUTS),
    setting(&["models", "*", "write_timeout"], Empty, TIMEOUTS),
    setting(&["models", "*", "pool_timeout"], Empty, TIMEOUTS),
    setting(
        &["tools", "*", "backend"],
        Default("\"auto\""),
        "has no effect: the search of DuckDuckGo has no other engines",
    ),
    setting(&["skills", "use"], Matching(is_local_storage), PYTHON),
    setting(
        &["skill_scan", "enabled"],
        Default("true"),
        "has no effect: skill archives are always checked before they are unpacked",
    ),
    setting(
        &["skill_evolution", "enabled"],
        Off,
        "has no effect: agents do not change skills by themselves",
    ),
    setting(
        &["tool_progress", "enabled"],
        Off,
        "has no effect: see `loop_detection` for runs that make no progress",
    ),
    setting(
        &["tool_search", "auto_promote_top_k"],
        Default("3"),
        "has no effect: a search always loads the tools that it finds",
    ),
    setting(
        &["loop_detection", "max_tracked_threads"],
        Default("100"),
        "has no effect: repetition is detected from the conversation, nothing else is tracked",
    ),
    setting(
        &["safety_finish_reason", "detectors"],
        Empty,
        "has no effect: the finish reasons of providers are built in, and no code is loaded",
    ),
    setting(
        &["scheduler", "multi_instance"],
        Off,
        "has no effect: any number of nodes may schedule, each task fires once",
    ),
    setting(
        &["scheduler", "lease_seconds"],
        Default("120"),
        "has no effect: a start that is not finished is repeated after 60 seconds",
    ),
    setting(
        &["scheduler", "max_concurrent_runs"],
        Default("3"),
        "has no effect: the runs of tasks have the limits of all runs",
    ),
    setting(&["mcp_tasks", "enabled"], Off, TASKS),
    setting(&["channels", "wechat", "enabled"], Off, NO_CHANNEL),
    setting(&["channels", "github", "enabled"], Off, NO_CHANNEL),
    setting(&["channels", "buzz", "enabled"], Off, NO_CHANNEL),
    setting(
        &["channel_connections", "wechat", "enabled"],
        Off,
        NO_CHANNEL,
    ),
    setting(&["channel_connections", "buzz", "enabled"], Off, NO_CHANNEL),
    setting(
        &["channels", "inbound_queue_maxsize"],
        Default("1000"),
        "has no effect: messages wait in the inbox, whose limits are built in",
    ),
    setting(
        &["channels", "shutdown_grace_period_seconds"],
        Default("3"),
        "has no effect: the inbox keeps what is not answered, and `runs.shutdown_grace_seconds` limits the end of runs",
    ),
    setting(
        &["channels", "session", "users"],
        Empty,
        "has no effect: layers of single users belong to `session.users` of a channel",
    ),
    setting(
        &["dedupe_storage", "backend"],
        Default("\"auto\""),
        "has no effect: the inbox of the channels detects duplicates",
    ),
    setting(
        &["agent_storage", "backend"],
        Default("\"file\""),
        "has no effect: custom agents are files, agents in a database are not read",
    ),
    setting(
        &["sandbox", "ownership", "type"],
        Default("\"memory\""),
        "has no effect: a sandbox belongs to the run, and the database assigns runs to nodes",
    ),
    setting(
        &["run_events", "track_token_usage"],
        Default("true"),
        "has no effect: token usage is always tracked",
    ),
    setting(
        &["run_ownership", "grace_seconds"],
        Default("10"),
        "has no effect: a lease expires after `run_ownership.lease_seconds`, by the clock of the database",
    ),
    setting(
        &["run_ownership", "heartbeat_enabled"],
        Off,
        "has no effect: leases are always renewed if processes share a database",
    ),
    setting(
        &["database", "echo_sql"],
        Off,
        "has no effect: `log_level: debug` logs the database statements",
    ),
    setting(
        &["database", "pool_recycle"],
        Default("300"),
        "has no effect: a connection is tested before it is used",
    ),
    setting(
        &["database", "command_timeout"],
        Default("30"),
        "has no effect: the timeouts of the database are built in",
    ),
    setting(
        &["database", "checkpoint_channel_mode"],
        Default("\"full\""),
        CHECKPOINTS,
    ),
    setting(
        &["database", "checkpoint_delta", "snapshot_frequency"],
        Default("10"),
        CHECKPOINTS,
    ),
    setting(
        &["database", "checkpoint_graph_cache", "accessor_graph_max"],
        Default("64"),
        CHECKPOINTS,
    ),
    setting(
        &["database", "checkpoint_cache", "type"],
        Default("\"memory\""),
        CHECKPOINTS,
    ),
    setting(
        &["database", "checkpoint_cache", "max_entries"],
        Default("128"),
        CHECKPOINTS,
    ),
    setting(
        &["database", "checkpoint_cache", "ttl_seconds"],
        Default("86400"),
        CHECKPOINTS,
    ),
    setting(
        &["database", "checkpoint_cache", "key_prefix"],
        Empty,
        CHECKPOINTS,
    ),
    setting(
        &["stream_bridge", "queue_maxsize"],
        Default("256"),
        "has no effect: streams keep whole runs",
    ),
    setting(
        &["stream_bridge", "max_connections"],
        Empty,
        "has no effect: a node has five connections to Redis",
    ),
    setting(
        &["stream_bridge", "recovered_stream_cleanup_delay_seconds"],
        Default("60"),
        "has no effect: streams are kept for `stream_bridge.stream_ttl_seconds`",
    ),
    setting(
        &["uploads", "pdf_converter"],
        Default("\"auto\""),
        "has no effect: there is only one converter",
    ),
    setting(
        &["summarization", "skill_file_read_tool_names"],
        Default(r#"["read_file", "read", "view", "cat"]"#),
        "has no effect: the tools that read skills are built in",
    ),
    setting(
        &["summarization", "preserve_recent_skill_count"],
        Empty,
        SKILL_VIEW,
    ),
    setting(
        &["summarization", "preserve_recent_skill_tokens"],
        Empty,
        SKILL_VIEW,
    ),
    setting(
        &["summarization", "preserve_recent_skill_tokens_per_skill"],
        Empty,
        SKILL_VIEW,
    ),
    setting(
        &["memory", "mode"],
        Default("\"middleware\""),
        "has no effect except that no new memories are written: agents have no memory tools yet",
    ),
    setting(&["memory", "storage_path"], Empty, MEMORY_STORAGE),
    setting(&["memory", "storage_class"], Empty, MEMORY_STORAGE),
    setting(
        &["memory", "backend_config", "storage_path"],
        Empty,
        MEMORY_STORAGE,
    ),
    setting(
        &["memory", "backend_config", "storage_class"],
        Default("\"file\""),
        MEMORY_STORAGE,
    ),
    setting(
        &["memory", "backend_config", "model"],
        Empty,
        "has no effect: memories are written by the model that `memory.model_name` names, or by the first of `models`",
    ),
];

/// Calls `sink` with each node that matches a key, and with the node's path.
fn for_each_match<'a>(
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
        for_each_match(item, rest, path, sink);
        path.pop();
    }
}

/// Returns warnings about settings that request an effect they do not have.
pub(super) fn warnings(root: &Node, path: &Path) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut check = |key: &[&str], values: &InertValues, message: &str| {
        for_each_match(root, key, &mut Vec::new(), &mut |key, node| {
            if values.is_requested(&node.to_json()) {
                let origin = Origin::File {
                    path: path.to_owned(),
                    place: node.place,
                };
                warnings.push(Warning {
                    origin,
                    key: dotted(key),
                    message: message.to_owned(),
                });
            }
        });
    };
    for setting in INEFFECTIVE {
        check(setting.key, &setting.values, setting.message);
    }
    for (key, default) in memory_settings::WITHOUT_EFFECT {
        let key = ["memory", "backend_config", key];
        check(&key, &Default(default), memory_settings::MESSAGE);
    }
    warnings
}

//! `config` and `context`: the parts that reach a run, and the keys that only the server sets.

use harness::runtime::runs::RunConfig;
use serde_json::{Map, Value};

use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Fields, number_issue};

/// Keys of `context` that DeerFlow's clients may set.
const CONTEXT_KEYS: &[&str] = &[
    "model_name",
    "mode",
    "thinking_enabled",
    "reasoning_effort",
    "is_plan_mode",
    "subagent_enabled",
    "max_concurrent_subagents",
    "max_total_subagents",
    "agent_name",
    "is_bootstrap",
    "github_token",
    "disable_clarification",
];

/// Keys that only the server sets.
const SERVER_KEYS: &[&str] = &[
    "user_id",
    "user_role",
    "tenant_id",
    "oauth_provider",
    "oauth_id",
    "is_internal",
    "non_interactive",
    "authz_attributes",
    "channel_user_id",
    "run_id",
    "thread_id",
    "assistant_id",
    "graph_id",
    "checkpoint_id",
    "checkpoint_ns",
    "checkpoint_map",
    "app_config",
    "secrets",
];

/// `true` if clients may not set `key`.
pub(crate) fn is_server_key(key: &str) -> bool {
    key.starts_with("__")
        || key.starts_with("langgraph_auth_")
        || key == "langgraph_request_id"
        || SERVER_KEYS.contains(&key)
}

/// Builds the run's configuration from `config` and `context`.
pub(super) fn read_config(fields: &mut Fields, dialect: Dialect) -> Result<RunConfig, ApiError> {
    let config = fields.object("config").unwrap_or_default();
    let context = fields.object("context").unwrap_or_default();
    let part = |key: &str| {
        config
            .get(key)
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default()
    };
    let configurable = part("configurable");
    if dialect.is_platform() && !configurable.is_empty() && !context.is_empty() {
        return Err(ApiError::BadRequest(
            "Cannot specify both configurable and context. Prefer setting context alone, which is its replacement.".to_owned(),
        ));
    }
    let allowed = |key: &str| dialect.is_platform() || CONTEXT_KEYS.contains(&key);
    let mut options: Map<String, Value> = configurable
        .into_iter()
        .filter(|(key, _)| !is_server_key(key))
        .collect();
    for source in [part("context"), context] {
        options.extend(
            source
                .into_iter()
                .filter(|(key, _)| allowed(key) && !is_server_key(key)),
        );
    }
    let tags = config.get("tags").and_then(Value::as_array).map(|tags| {
        tags.iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    });
    let recursion_limit = recursion_limit(fields, config.get("recursion_limit"));
    Ok(RunConfig {
        recursion_limit,
        options,
        tags: tags.unwrap_or_default(),
    })
}

/// Reads the recursion limit; absent means the planner's default. The planner caps it.
fn recursion_limit(fields: &mut Fields, value: Option<&Value>) -> Option<u64> {
    let value = value.filter(|value| !value.is_null())?;
    let limit = value.as_u64().filter(|limit| *limit > 0);
    if limit.is_none() {
        fields.push(number_issue(
            vec!["body".into(), "config".into(), "recursion_limit".into()],
            value,
            1..=u64::MAX,
        ));
    }
    limit
}

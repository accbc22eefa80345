//! `config` and `context`: the parts that reach a run, and the keys that only the server sets.

use harness::runtime::runs::RunConfig;
use serde_json::{Map, Value};

use super::bodies::RunCreate;
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Issues, number_issue};

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
pub(super) fn read_config(
    body: &RunCreate,
    issues: &mut Issues,
    dialect: Dialect,
) -> Result<RunConfig, ApiError> {
    let config = body.config.as_ref();
    let context = body.context.clone().unwrap_or_default();
    let part = |key: &str| {
        config
            .and_then(|config| config.get(key)?.as_object())
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
    let tags = config.and_then(|config| config.get("tags")?.as_array());
    let tags = tags.map(|tags| {
        tags.iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    });
    let recursion_limit = recursion_limit(
        config.and_then(|config| config.get("recursion_limit")),
        issues,
    );
    Ok(RunConfig {
        recursion_limit,
        options,
        tags: tags.unwrap_or_default(),
    })
}

/// Reads the recursion limit; absent means the planner's default. The planner caps it.
fn recursion_limit(value: Option<&Value>, issues: &mut Issues) -> Option<u64> {
    let value = value.filter(|value| !value.is_null())?;
    let limit = value.as_u64().filter(|limit| *limit > 0);
    if limit.is_none() {
        issues.push(number_issue(
            vec!["body".into(), "config".into(), "recursion_limit".into()],
            value,
            1..=u64::MAX,
        ));
    }
    limit
}

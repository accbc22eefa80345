//! `config` and `context`: the parts that reach a run, and the keys that only the server sets.

use harness::runtime::runs::RunConfig;
use serde_json::{Map, Value};

use super::bodies::{Config, RunCreate};
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Body, Issues};

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
    "dry_run",
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
    let context = body.context.clone().unwrap_or_default();
    let in_config = body
        .config
        .as_ref()
        .and_then(|config| config.get("context")?.as_object())
        .cloned()
        .unwrap_or_default();
    let config = check_config(body.config.clone().unwrap_or_default(), issues, dialect);
    let configurable = config.configurable.unwrap_or_default();
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
    for source in [in_config, context] {
        options.extend(
            source
                .into_iter()
                .filter(|(key, _)| allowed(key) && !is_server_key(key)),
        );
    }
    Ok(RunConfig {
        recursion_limit: config.recursion_limit,
        options,
        tags: config.tags.unwrap_or_default(),
    })
}

/// Reads the configuration of a run, a cron or an assistant. The planner of runs replaces an absent
/// recursion limit and caps it.
pub(crate) fn check_config(
    config: Map<String, Value>,
    issues: &mut Issues,
    dialect: Dialect,
) -> Config {
    let (config, own_issues) = Body::<Config>::new(config, dialect).parts();
    issues.nest(own_issues, &["config".into()]);
    config
}

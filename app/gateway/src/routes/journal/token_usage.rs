//! `GET .../token-usage`: totals of a thread's runs and of its auxiliary model calls.

use axum::Json;
use axum::extract::State;
use harness::ids::ThreadId;
use harness::messages::UsageMetadata;
use harness::models::AUXILIARY_USAGE;
use harness::runtime::runs::RunRecord;
use harness::runtime::runs::store::EventQuery;
use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::extract::{Ids, Query};
use crate::queries::pricing::CostTotal;
use crate::queries::threads::{all_events, all_runs, require_thread};
use crate::routes::{App, JsonResult};
use crate::state::GatewayState;

pub(crate) async fn token_usage(State(state): App, ids: Ids, query: Query) -> JsonResult {
    let thread = ids.thread()?;
    let include_active = query.flag("include_active")?.unwrap_or_default();
    require_thread(&state, &thread).await?;
    let runs = all_runs(&state, &thread).await?;
    let context = context(&state, &thread, runs.first()).await?;
    let finished: Vec<&RunRecord> = runs
        .iter()
        .filter(|run| include_active || run.status.is_terminal())
        .collect();
    let auxiliary_usage = auxiliary_usage(&state, &thread).await?;
    let auxiliary = auxiliary_usage
        .iter()
        .map(|(_, usage)| usage.clone())
        .reduce(|sum, usage| sum.and(&usage))
        .unwrap_or_default();
    let sum = |field: fn(&RunRecord) -> u64| finished.iter().map(|run| field(run)).sum::<u64>();
    let models = by_model(&finished, &auxiliary_usage);
    let mut response = json!({
        "thread_id": thread,
        "total_tokens": sum(|run| run.completion.total_tokens) + auxiliary.total(),
        "total_input_tokens": sum(|run| run.completion.total_input_tokens) + auxiliary.input_tokens,
        "total_output_tokens": sum(|run| run.completion.total_output_tokens) + auxiliary.output_tokens,
        "total_runs": finished.len(),
        "by_model": {},
        "by_caller": {
            "lead_agent": sum(|run| run.completion.lead_agent_tokens),
            "subagent": sum(|run| run.completion.subagent_tokens),
            "middleware": sum(|run| run.completion.middleware_tokens) + auxiliary.total(),
        },
        "context_usage": context,
    });
    priced(&mut response, &models, &state);
    Ok(Json(response))
}

/// Usage of one model.
#[derive(Debug, Default)]
struct ModelUsage {
    usage: UsageMetadata,
    runs: u64,
}

fn by_model(
    runs: &[&RunRecord],
    auxiliary_usage: &[(String, UsageMetadata)],
) -> IndexMap<String, ModelUsage> {
    let mut models: IndexMap<String, ModelUsage> = IndexMap::new();
    for (model, usage) in runs.iter().flat_map(|run| run.completion.by_model()) {
        let entry = models.entry(model.to_owned()).or_default();
        entry.usage = entry.usage.and(&usage);
        entry.runs += 1;
    }
    for (model, usage) in auxiliary_usage {
        let entry = models.entry(model.clone()).or_default();
        entry.usage = entry.usage.and(usage);
    }
    models
}

/// Writes the usage of each model, and its cost if its price is known.
fn priced(response: &mut Value, models: &IndexMap<String, ModelUsage>, state: &GatewayState) {
    let mut costs = CostTotal::new(|model| state.info.pricing(model));
    for (model, used) in models {
        response["by_model"][model] = json!({ "tokens": used.usage.total(), "runs": used.runs });
        if let Some(cost) = costs.add(model, &used.usage) {
            response["by_model"][model]["cost"] = json!(cost);
        }
    }
    if let Some((currency, cost)) = costs.total() {
        response["total_cost"] = json!(cost);
        response["currency"] = json!(currency);
    }
}

/// Returns the usage of the thread's auxiliary model calls.
async fn auxiliary_usage(
    state: &GatewayState,
    thread: &ThreadId,
) -> Result<Vec<(String, UsageMetadata)>, ApiError> {
    let query = EventQuery {
        event_types: vec![AUXILIARY_USAGE.to_owned()],
        ..EventQuery::default()
    };
    let rows = all_events(state, thread, query, |_| false).await?;
    let read = rows.iter().filter_map(|row| {
        let content = &row.event.content;
        Some((
            content.get("model")?.as_str()?.to_owned(),
            UsageMetadata::deserialize(content.get("usage")?).ok()?,
        ))
    });
    Ok(read.collect())
}

/// Returns the thread's share of the model's context window.
async fn context(
    state: &GatewayState,
    thread: &ThreadId,
    newest: Option<&RunRecord>,
) -> Result<Value, ApiError> {
    let Some(snapshot) = state.thread_services.checkpoints.get(thread, None).await? else {
        return Ok(Value::Null);
    };
    let ruler = state
        .agent_services
        .assist
        .ruler(newest.and_then(|run| run.model_name.as_deref()));
    let tokens = ruler.tokens(&snapshot.state);
    let window = ruler.policy().window.filter(|window| *window > 0);
    // Counts are far below the exact range of a float.
    let percentage = window.map(|window| (tokens as f64 / window as f64 * 1_000.0).round() / 10.0);
    Ok(json!({ "token_count": tokens, "max_context_tokens": window, "percentage": percentage }))
}

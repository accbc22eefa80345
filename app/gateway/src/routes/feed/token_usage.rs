//! `GET .../token-usage`: what a thread's runs add up to, with what models were asked beside them.

use axum::Json;
use axum::extract::State;
use harness::ids::ThreadId;
use harness::messages::UsageMetadata;
use harness::models::ASIDE_USAGE;
use harness::runtime::runs::RunRecord;
use harness::runtime::runs::store::EventQuery;
use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::bill::Bill;
use crate::error::ApiError;
use crate::extract::{Ids, Query};
use crate::reads::{all_events, all_runs, require_thread};
use crate::routes::{Answer, App};
use crate::state::GatewayState;

pub(crate) async fn token_usage(State(state): App, ids: Ids, query: Query) -> Answer {
    let thread = ids.thread()?;
    let include_active = query.flag("include_active")?.unwrap_or_default();
    require_thread(&state, &thread).await?;
    let runs = all_runs(&state, &thread).await?;
    let context = context(&state, &thread, runs.first()).await?;
    let counted: Vec<&RunRecord> = runs
        .iter()
        .filter(|run| include_active || run.status.is_terminal())
        .collect();
    let asides = asides(&state, &thread).await?;
    let beside = asides
        .iter()
        .map(|(_, usage)| usage.clone())
        .reduce(|sum, usage| sum.and(&usage))
        .unwrap_or_default();
    let sum = |field: fn(&RunRecord) -> u64| counted.iter().map(|run| field(run)).sum::<u64>();
    let models = by_model(&counted, &asides);
    let mut answer = json!({
        "thread_id": thread,
        "total_tokens": sum(|run| run.completion.total_tokens) + beside.total(),
        "total_input_tokens": sum(|run| run.completion.total_input_tokens) + beside.input_tokens,
        "total_output_tokens": sum(|run| run.completion.total_output_tokens) + beside.output_tokens,
        "total_runs": counted.len(),
        "by_model": {},
        "by_caller": {
            "lead_agent": sum(|run| run.completion.lead_agent_tokens),
            "subagent": sum(|run| run.completion.subagent_tokens),
            "middleware": sum(|run| run.completion.middleware_tokens) + beside.total(),
        },
        "context_usage": context,
    });
    priced(&mut answer, &models, &state);
    Ok(Json(answer))
}

/// What one model was used for.
#[derive(Debug, Default)]
struct Used {
    usage: UsageMetadata,
    runs: u64,
}

fn by_model(runs: &[&RunRecord], asides: &[(String, UsageMetadata)]) -> IndexMap<String, Used> {
    let mut models: IndexMap<String, Used> = IndexMap::new();
    for (model, usage) in runs.iter().flat_map(|run| run.completion.by_model()) {
        let entry = models.entry(model.to_owned()).or_default();
        entry.usage = entry.usage.and(&usage);
        entry.runs += 1;
    }
    for (model, usage) in asides {
        let entry = models.entry(model.clone()).or_default();
        entry.usage = entry.usage.and(usage);
    }
    models
}

/// Writes what each model was used for, and what it cost where its price is known.
fn priced(answer: &mut Value, models: &IndexMap<String, Used>, state: &GatewayState) {
    let mut bill = Bill::new(|model| state.info.pricing(model));
    for (model, used) in models {
        answer["by_model"][model] = json!({ "tokens": used.usage.total(), "runs": used.runs });
        if let Some(cost) = bill.add(model, &used.usage) {
            answer["by_model"][model]["cost"] = json!(cost);
        }
    }
    if let Some((currency, cost)) = bill.total() {
        answer["total_cost"] = json!(cost);
        answer["currency"] = json!(currency);
    }
}

/// What models were asked beside the thread's runs.
async fn asides(
    state: &GatewayState,
    thread: &ThreadId,
) -> Result<Vec<(String, UsageMetadata)>, ApiError> {
    let query = EventQuery {
        event_types: vec![ASIDE_USAGE.to_owned()],
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

/// How much of the model's window the thread takes as it stands.
async fn context(
    state: &GatewayState,
    thread: &ThreadId,
    newest: Option<&RunRecord>,
) -> Result<Value, ApiError> {
    let Some(snapshot) = state.checkpoints.get(thread, None).await? else {
        return Ok(Value::Null);
    };
    let ruler = state
        .aids
        .ruler(newest.and_then(|run| run.model_name.as_deref()));
    let tokens = ruler.tokens(&snapshot.state);
    let window = ruler.policy().window.filter(|window| *window > 0);
    // Counts stay far below what a float holds exactly.
    let percentage = window.map(|window| (tokens as f64 / window as f64 * 1_000.0).round() / 10.0);
    Ok(json!({ "token_count": tokens, "max_context_tokens": window, "percentage": percentage }))
}

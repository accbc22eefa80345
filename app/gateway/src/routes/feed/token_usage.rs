//! `GET .../token-usage`: what a thread's runs add up to.

use axum::Json;
use axum::extract::State;
use harness::runtime::runs::RunRecord;
use serde_json::{Map, Value, json};

use crate::extract::{Ids, Query};
use crate::reads::{all_runs, require_thread};
use crate::routes::{Answer, App};

pub(crate) async fn token_usage(State(state): App, ids: Ids, query: Query) -> Answer {
    let thread = ids.thread()?;
    let include_active = query.flag("include_active")?.unwrap_or_default();
    require_thread(&state, &thread).await?;
    let runs = all_runs(&state, &thread).await?;
    let counted: Vec<&RunRecord> = runs.iter().filter(|run| include_active || run.status.is_terminal()).collect();
    let sum = |field: fn(&RunRecord) -> u64| counted.iter().map(|run| field(run)).sum::<u64>();
    Ok(Json(json!({
        "thread_id": thread,
        "total_tokens": sum(|run| run.completion.total_tokens),
        "total_input_tokens": sum(|run| run.completion.total_input_tokens),
        "total_output_tokens": sum(|run| run.completion.total_output_tokens),
        "total_runs": counted.len(),
        "by_model": by_model(&counted),
        "by_caller": {
            "lead_agent": sum(|run| run.completion.lead_agent_tokens),
            "subagent": sum(|run| run.completion.subagent_tokens),
            "middleware": sum(|run| run.completion.middleware_tokens),
        },
        "context_usage": null,
    })))
}

fn by_model(runs: &[&RunRecord]) -> Value {
    let mut models: Map<String, Value> = Map::new();
    for (model, used) in runs.iter().flat_map(|run| &run.completion.token_usage_by_model) {
        let used =
            used.as_u64().or_else(|| used.get("total_tokens")?.as_u64()).or_else(|| used.get("tokens")?.as_u64()).unwrap_or_default();
        let entry = models.entry(model.as_str()).or_insert_with(|| json!({ "tokens": 0, "runs": 0 }));
        let (tokens, count) = (entry["tokens"].as_u64().unwrap_or_default(), entry["runs"].as_u64().unwrap_or_default());
        *entry = json!({ "tokens": tokens + used, "runs": count + 1 });
    }
    models.into()
}

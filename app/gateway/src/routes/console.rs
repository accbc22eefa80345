//! `/console`: totals of the caller's runs in all threads.

use std::collections::HashMap;

use axum::Json;
use axum::extract::State;
use chrono::{NaiveDate, TimeDelta};
use deerflow_domain::threads::ThreadSearch;
use deerflow_domain::usage::{ModelUsage, UsageWindow};
use harness::clock::iso_z;
use harness::messages::UsageMetadata;
use harness::models::Pricing;
use harness::runtime::actor_context::{Owner, effective_user_id};
use harness::runtime::runs::RunRecord;
use harness::runtime::runs::store::RunListQuery;
use indexmap::IndexMap;
use serde_json::{Value, json};

use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::Query;
use crate::queries::pricing::CostTotal;
use crate::responses::run_status;
use crate::routes::runs::STATUSES;
use crate::routes::{App, JsonResult};
use crate::state::GatewayState;

/// Maximum offset of a clock from UTC, in minutes.
const MAX_UTC_OFFSET_MINUTES: u64 = 840;
/// Maximum offset of a page.
const MAX_OFFSET: u64 = 1_000_000_000;

/// `GET /console/stats`: all totals.
pub(crate) async fn stats(State(state): App) -> JsonResult {
    let runs = state.run_services.usage.counts(&Owner::Auto).await?;
    let threads = state
        .thread_services
        .threads
        .count(&ThreadSearch::default(), &Owner::Auto)
        .await?;
    let agents = state
        .agent_services
        .custom_agents
        .list(&effective_user_id())
        .await?
        .len();
    let model_usage = state.run_services.usage.model_usage(&Owner::Auto).await?;
    let mut cost_total = cost_total(&state);
    for model in &model_usage {
        cost_total.add(&model.model, &model.usage);
    }
    let (currency, cost) = cost_total.total().unzip();
    Ok(Json(json!({
        "total_runs": runs.all,
        "active_runs": runs.active,
        "failed_runs": runs.failed,
        "total_threads": threads,
        "total_agents": agents,
        "total_tokens": total_usage(&model_usage).total(),
        "total_cost": cost,
        "currency": currency,
    })))
}

/// `GET /console/runs`: the runs of all threads, newest first.
pub(crate) async fn runs(State(state): App, query: Query) -> JsonResult {
    let limit = query.number("limit", 1..=100)?.unwrap_or(20) as usize;
    let offset = query.number("offset", 0..=MAX_OFFSET)?.unwrap_or(0) as usize;
    let status = query.word("status", STATUSES)?;
    let mut matches = state
        .run_services
        .usage
        .runs(
            &RunListQuery {
                limit: limit + 1,
                offset,
                status,
            },
            &Owner::Auto,
        )
        .await?;
    let has_more = matches.len() > limit;
    matches.truncate(limit);
    let titles = titles(&state, &matches).await?;
    let rows: Vec<Value> = matches
        .iter()
        .map(|run| run_view(run, titles.get(run.thread_id.as_str()), &state))
        .collect();
    Ok(Json(json!({ "runs": rows, "has_more": has_more })))
}

fn run_view(run: &RunRecord, title: Option<&String>, state: &GatewayState) -> Value {
    let mut cost_total = cost_total(state);
    let costs: Vec<f64> = run
        .completion
        .by_model()
        .filter_map(|(model, usage)| cost_total.add(model, &usage))
        .collect();
    // Durations are far below the exact range of a float.
    let seconds = (run.updated_at - run.created_at).num_milliseconds().max(0) as f64 / 1_000.0;
    json!({
        "run_id": run.run_id,
        "thread_id": run.thread_id,
        "thread_title": title,
        "assistant_id": run.assistant,
        "status": run_status(run, Dialect::DeerFlow),
        "model_name": run.model_name,
        "created_at": iso_z(run.created_at),
        "updated_at": iso_z(run.updated_at),
        "duration_seconds": run.status.is_terminal().then_some(seconds),
        "total_tokens": run.completion.total_tokens,
        "message_count": run.completion.message_count,
        "cost": cost_total.total().filter(|_| !costs.is_empty()).map(|(_, cost)| cost),
        "error": run.error,
    })
}

/// Returns the titles of the threads of a page.
async fn titles(
    state: &GatewayState,
    runs: &[RunRecord],
) -> Result<HashMap<String, String>, ApiError> {
    if runs.is_empty() {
        return Ok(HashMap::new());
    }
    let search = ThreadSearch {
        ids: runs.iter().map(|run| run.thread_id.clone()).collect(),
        limit: runs.len(),
        ..ThreadSearch::default()
    };
    let threads = state
        .thread_services
        .threads
        .search(&search, &Owner::Auto)
        .await?;
    Ok(threads
        .into_iter()
        .filter_map(|thread| Some((thread.thread_id.to_string(), thread.title?)))
        .collect())
}

/// `GET /console/usage`: tokens and costs by day and by model.
pub(crate) async fn usage(State(state): App, query: Query) -> JsonResult {
    let days = query.number("days", 1..=90)?.unwrap_or(14) as u32;
    let utc_offset = TimeDelta::minutes(
        query
            .signed("tz_offset_minutes", MAX_UTC_OFFSET_MINUTES)?
            .unwrap_or(0),
    );
    let now = state.process.clock.now();
    let window = UsageWindow::last_days(days, now, utc_offset);
    let matches = state.run_services.usage.days(&window, &Owner::Auto).await?;
    let mut cost_total = cost_total(&state);
    let mut by_model: IndexMap<&str, (ModelUsage, Option<f64>)> = IndexMap::new();
    let mut by_date: HashMap<NaiveDate, Value> = HashMap::new();
    let (mut tokens, mut runs) = (0, 0);
    for day in &matches {
        let mut cost = 0.0;
        for model_usage in &day.model_usage {
            let paid = cost_total.add(&model_usage.model, &model_usage.usage);
            cost += paid.unwrap_or_default();
            let (sum, price) = by_model.entry(model_usage.model.as_str()).or_default();
            sum.runs += model_usage.runs;
            sum.usage = sum.usage.and(&model_usage.usage);
            *price = paid.map(|paid| price.unwrap_or_default() + paid).or(*price);
        }
        let sum = total_usage(&day.model_usage);
        tokens = sum.total().saturating_add(tokens);
        runs += day.runs;
        by_date.insert(day.date, row(day.date, &sum, day.runs, cost));
    }
    let first = window.day_of(window.since);
    let dates = first.iter_days().take(days as usize);
    let none = UsageMetadata::default();
    let rows: Vec<Value> = dates
        .map(|date| {
            by_date
                .remove(&date)
                .unwrap_or_else(|| row(date, &none, 0, 0.0))
        })
        .collect();
    let models = by_model.into_iter().map(|(model, (sum, cost))| {
        let (input, cached) = (sum.usage.input_tokens, sum.usage.cache_read());
        let model_view = json!({
            "tokens": sum.usage.total(), "runs": sum.runs, "cost": cost, "input_tokens": input, "cache_read_tokens": cached,
        });
        (model.to_owned(), model_view)
    });
    let models: serde_json::Map<String, Value> = models.collect();
    let (currency, cost) = cost_total.total().unzip();
    Ok(Json(json!({
        "days": rows,
        "by_model": models,
        "total_tokens": tokens,
        "total_runs": runs,
        "total_cost": cost,
        "currency": currency,
    })))
}

fn total_usage(model_usage: &[ModelUsage]) -> UsageMetadata {
    model_usage
        .iter()
        .fold(UsageMetadata::default(), |sum, model_usage| {
            sum.and(&model_usage.usage)
        })
}

fn row(date: NaiveDate, sum: &UsageMetadata, runs: u64, cost: f64) -> Value {
    json!({
        "date": date.to_string(),
        "total_tokens": sum.total(),
        "input_tokens": sum.input_tokens,
        "output_tokens": sum.output_tokens,
        "runs": runs,
        "cost": cost,
    })
}

fn cost_total(state: &GatewayState) -> CostTotal<impl Fn(&str) -> Option<Pricing>> {
    CostTotal::new(|model| state.info.pricing(model))
}

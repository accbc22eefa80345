//! `POST /runs/batch`: several stateless runs; all of them are understood before the first is made.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use harness::runtime::runs::store::AdmitError;
use harness::runtime::runs::{RunError, RunRecord, RunSpec};
use serde_json::Value;

use super::{made_run, spec_known_by};
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Fields, ListBody};
use crate::input::RunTarget;
use crate::repeats::{Repeatable, made_before, made_of, replayed};
use crate::routes::{App, Reply, to_its_end};
use crate::state::GatewayState;
use crate::wire::run_json;

pub(crate) async fn batch(
    State(state): App,
    dialect: Dialect,
    asked: Repeatable,
    ListBody(bodies): ListBody,
) -> Reply {
    let key = asked.with_body(&state, &bodies);
    // Runs are made in order, each under a part of the key: what is missing of a batch that came before is made now.
    let mut made = Vec::with_capacity(bodies.len());
    let mut specs = Vec::new();
    for (part, body) in (0..).zip(bodies) {
        let key = key.as_ref().map(|key| key.part(part));
        if specs.is_empty()
            && let Some(before) = made_before(&state, key.as_ref()).await?
        {
            made.push(made_run(&state, dialect, before).await?);
            continue;
        }
        let fields = Fields::new("body", body);
        specs.push(
            spec_known_by(key.as_ref(), &state, dialect, &RunTarget::Stateless, fields).await?,
        );
    }
    let is_replay = !made.is_empty();
    let shared = Arc::clone(&state);
    let runs = to_its_end(&state, "make a batch of runs", async move {
        for spec in specs {
            made.push(make(&shared, dialect, spec).await?);
        }
        Ok(made
            .iter()
            .map(|run| run_json(run, dialect))
            .collect::<Value>())
    });
    let answer = Json(runs.await?).into_response();
    Ok(if is_replay { replayed(answer) } else { answer })
}

/// Makes one of the runs, unless a twin of the batch was faster.
async fn make(
    state: &GatewayState,
    dialect: Dialect,
    spec: RunSpec,
) -> Result<RunRecord, ApiError> {
    match state.runs.create_background(spec).await {
        Err(RunError::Admit(AdmitError::KnownRequest(known))) => {
            made_run(state, dialect, made_of(known)?).await
        }
        made => Ok(made?),
    }
}

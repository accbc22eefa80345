//! `POST /runs/batch`: several stateless runs; all are validated before the first is created.

use std::sync::Arc;

use axum::extract::State;
use axum::response::IntoResponse;
use harness::runtime::runs::store::AdmitError;
use harness::runtime::runs::{RunError, RunRecord, RunRequest};

use super::{find_created_run, idempotent_spec};
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Body, IdempotencyKey, ListBody};
use crate::requests::RunTarget;
use crate::requests::bodies::RunCreate;
use crate::responses::{RunView, SharingJson};
use crate::routes::idempotency::{created_by, find_created, mark_replayed};
use crate::routes::{App, ResponseResult, run_to_completion};
use crate::state::GatewayState;

pub(crate) async fn batch(
    State(state): App,
    dialect: Dialect,
    idempotency_key: IdempotencyKey,
    ListBody(bodies): ListBody<RunCreate>,
) -> ResponseResult {
    let key = idempotency_key.with_body(&state, bodies.iter().map(Body::map));
    // Runs are created in order, each under a part of the key: a retry creates those that are
    // missing.
    let mut created = Vec::with_capacity(bodies.len());
    let mut specs = Vec::new();
    for (part, body) in (0..).zip(bodies) {
        let key = key.as_ref().map(|key| key.part(part));
        if specs.is_empty()
            && let Some(before) = find_created(&state, key.as_ref()).await?
        {
            created.push(find_created_run(&state, dialect, before).await?);
            continue;
        }
        let target = &RunTarget::Stateless;
        let spec = idempotent_spec(key.as_ref(), &state, dialect, target, body.into_map());
        specs.push(spec.await?);
    }
    let is_replay = !created.is_empty();
    let shared = Arc::clone(&state);
    let runs = run_to_completion(&state, "create a batch of runs", async move {
        for spec in specs {
            created.push(create_run(&shared, dialect, spec).await?);
        }
        Ok(created)
    });
    let runs = runs.await?;
    let views = runs.iter().map(|run| RunView::new(run, dialect));
    let echoes = runs.iter().map(|run| run.kwargs.to_bytes()).collect();
    let response = SharingJson(views.collect::<Vec<_>>(), echoes).into_response();
    Ok(if is_replay {
        mark_replayed(response)
    } else {
        response
    })
}

/// Creates one of the runs, or returns the one that a concurrent retry created.
async fn create_run(
    state: &GatewayState,
    dialect: Dialect,
    spec: RunRequest,
) -> Result<RunRecord, ApiError> {
    match state.runs.create_background(spec).await {
        Err(RunError::Admit(AdmitError::KnownRequest(known))) => {
            find_created_run(state, dialect, created_by(known)?).await
        }
        created => Ok(created?),
    }
}

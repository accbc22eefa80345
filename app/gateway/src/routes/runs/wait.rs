//! `POST .../runs/wait`: creates a run and returns its last state.

use std::sync::Arc;

use axum::extract::State;
use futures_util::FutureExt;
use harness::runtime::actor_context::scope;
use harness::runtime::runs::RunWaits;

use super::{
    actor, cancels_on_disconnect, create_for_client, find_created_run, guard, idempotent_spec,
};
use crate::dialect::Dialect;
use crate::extract::{Body, IdempotencyKey, Ids};
use crate::requests::RunTarget;
use crate::requests::bodies::{RunCreate, ThreadRunCreate};
use crate::routes::idempotency::idempotent;
use crate::routes::{App, ResponseResult};
use crate::sse::{ended_json, run_location, waiting_json};
use crate::state::GatewayState;
use serde_json::{Map, Value};

pub(crate) async fn wait(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    idempotency_key: IdempotencyKey,
    body: Body<ThreadRunCreate>,
) -> ResponseResult {
    begin(
        &state,
        dialect,
        &RunTarget::Thread(ids.thread()?),
        idempotency_key,
        body.into_map(),
    )
    .await
}

pub(crate) async fn wait_stateless(
    State(state): App,
    dialect: Dialect,
    idempotency_key: IdempotencyKey,
    body: Body<RunCreate>,
) -> ResponseResult {
    begin(
        &state,
        dialect,
        &RunTarget::Stateless,
        idempotency_key,
        body.into_map(),
    )
    .await
}

async fn begin(
    state: &Arc<GatewayState>,
    dialect: Dialect,
    target: &RunTarget,
    idempotency_key: IdempotencyKey,
    body: Map<String, Value>,
) -> ResponseResult {
    let (key, cancels) = (
        idempotency_key.with_body(state, [&body]),
        cancels_on_disconnect(&body),
    );
    let make = async {
        let spec = idempotent_spec(key.as_ref(), state, dialect, target, body).await?;
        let waits = RunWaits::new(state.runs.runtime());
        let created = create_for_client(state, spec.on_disconnect, async move {
            waits.create(spec).await
        })
        .await?;
        let location = run_location(dialect, &created.run.thread_id, &created.run.run_id, "join");
        Ok(waiting_json(
            dialect,
            location,
            created.output.map(Ok).boxed(),
            created.guard,
            state.process.shutdown.clone(),
        ))
    };
    let replay = |created| async move {
        let run = find_created_run(state, dialect, created).await?;
        let location = run_location(dialect, &run.thread_id, &run.run_id, "join");
        if run.status.is_terminal() {
            let outcome = state.runs.join_wait(Some(&run.thread_id), &run.run_id);
            return Ok(ended_json(dialect, location, outcome.await));
        }
        let guard = cancels.then(|| guard(state, &run));
        let runs = Arc::clone(&state.runs);
        let outcome = scope(actor(), async move {
            runs.join_wait(Some(&run.thread_id), &run.run_id).await
        })
        .boxed();
        Ok(waiting_json(
            dialect,
            location,
            outcome,
            guard,
            state.process.shutdown.clone(),
        ))
    };
    idempotent(state, key.as_ref(), make, replay).await
}

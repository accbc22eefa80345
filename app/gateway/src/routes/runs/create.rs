//! `POST /threads/{t}/runs` and `POST /runs`: creates a background run.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use harness::runtime::runs::RunRecord;

use super::{find_created_run, idempotent_spec};
use crate::dialect::Dialect;
use crate::extract::{Body, IdempotencyKey, Ids};
use crate::requests::RunTarget;
use crate::requests::bodies::{RunCreate, ThreadRunCreate};
use crate::responses::{RunView, SharingJson};
use crate::routes::idempotency::idempotent;
use crate::routes::{App, ResponseResult};
use crate::sse::run_location;
use crate::state::GatewayState;
use serde_json::{Map, Value};

pub(crate) async fn create(
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

pub(crate) async fn create_stateless(
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
    state: &GatewayState,
    dialect: Dialect,
    target: &RunTarget,
    idempotency_key: IdempotencyKey,
    body: Map<String, Value>,
) -> ResponseResult {
    let key = idempotency_key.with_body(state, [&body]);
    let make = async {
        let spec = idempotent_spec(key.as_ref(), state, dialect, target, body).await?;
        Ok(response(
            &state.runs.create_background(spec).await?,
            dialect,
        ))
    };
    idempotent(state, key.as_ref(), make, |created| async {
        Ok(response(
            &find_created_run(state, dialect, created).await?,
            dialect,
        ))
    })
    .await
}

fn response(run: &RunRecord, dialect: Dialect) -> Response {
    let [content_location, _] = run_location(dialect, &run.thread_id, &run.run_id, "stream");
    (
        [content_location],
        SharingJson(RunView::new(run, dialect), vec![run.kwargs.to_bytes()]),
    )
        .into_response()
}

//! `POST /threads/{t}/runs` and `POST /runs`: a run in the background.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use harness::runtime::runs::RunRecord;

use super::{made_run, spec_known_by};
use crate::dialect::Dialect;
use crate::extract::{Body, Fields, Ids};
use crate::input::RunTarget;
use crate::repeats::{Repeatable, once};
use crate::routes::{App, Reply};
use crate::sse::run_location;
use crate::state::GatewayState;
use crate::wire::run_json;

pub(crate) async fn create(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    asked: Repeatable,
    Body(body): Body,
) -> Reply {
    begin(
        &state,
        dialect,
        &RunTarget::Thread(ids.thread()?),
        asked,
        body,
    )
    .await
}

pub(crate) async fn create_stateless(
    State(state): App,
    dialect: Dialect,
    asked: Repeatable,
    Body(body): Body,
) -> Reply {
    begin(&state, dialect, &RunTarget::Stateless, asked, body).await
}

async fn begin(
    state: &GatewayState,
    dialect: Dialect,
    target: &RunTarget,
    asked: Repeatable,
    body: Fields,
) -> Reply {
    let key = asked.with_body(state, [body.map()]);
    let make = async {
        let spec = spec_known_by(key.as_ref(), state, dialect, target, body).await?;
        Ok(answer(&state.runs.create_background(spec).await?, dialect))
    };
    once(state, key.as_ref(), make, |made| async {
        Ok(answer(&made_run(state, dialect, made).await?, dialect))
    })
    .await
}

fn answer(run: &RunRecord, dialect: Dialect) -> Response {
    let [content_location, _] = run_location(dialect, &run.thread_id, &run.run_id, "stream");
    ([content_location], Json(run_json(run, dialect))).into_response()
}

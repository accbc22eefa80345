//! `POST .../runs/wait`: a run, and its last state when it is over.

use std::sync::Arc;

use axum::extract::State;
use futures_util::FutureExt;
use harness::runtime::actor_context::scope;

use super::{actor, cancels_on_disconnect, guard, made_for_reader, made_run, spec_known_by};
use crate::dialect::Dialect;
use crate::extract::{Body, Fields, Ids};
use crate::input::RunTarget;
use crate::repeats::{Repeatable, once};
use crate::routes::{App, Reply};
use crate::sse::{run_location, waiting_json};
use crate::state::GatewayState;

pub(crate) async fn wait(
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

pub(crate) async fn wait_stateless(
    State(state): App,
    dialect: Dialect,
    asked: Repeatable,
    Body(body): Body,
) -> Reply {
    begin(&state, dialect, &RunTarget::Stateless, asked, body).await
}

async fn begin(
    state: &Arc<GatewayState>,
    dialect: Dialect,
    target: &RunTarget,
    asked: Repeatable,
    body: Fields,
) -> Reply {
    let (key, cancels) = (
        asked.with_body(state, [body.map()]),
        cancels_on_disconnect(&body),
    );
    let make = async {
        let spec = spec_known_by(key.as_ref(), state, dialect, target, body).await?;
        let runs = Arc::clone(&state.runs);
        let made = made_for_reader(state, spec.on_disconnect, async move {
            runs.create_for_waiting(spec).await
        })
        .await?;
        let location = run_location(dialect, &made.run.thread_id, &made.run.run_id, "join");
        Ok(waiting_json(
            dialect,
            location,
            made.way.map(Ok).boxed(),
            made.guard,
            state.shutdown.clone(),
        ))
    };
    let again = |made| async move {
        let run = made_run(state, dialect, made).await?;
        let location = run_location(dialect, &run.thread_id, &run.run_id, "join");
        let guard = (cancels && !run.status.is_terminal()).then(|| guard(state, &run));
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
            state.shutdown.clone(),
        ))
    };
    once(state, key.as_ref(), make, again).await
}

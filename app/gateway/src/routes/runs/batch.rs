//! `POST /runs/batch`: several stateless runs; all of them are understood before the first is made.

use axum::Json;
use axum::extract::State;

use super::spec_for;
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Fields, ListBody};
use crate::input::RunTarget;
use crate::routes::{Answer, App, to_its_end};
use crate::wire::run_json;

pub(crate) async fn batch(State(state): App, dialect: Dialect, ListBody(bodies): ListBody) -> Answer {
    let mut specs = Vec::with_capacity(bodies.len());
    for body in bodies {
        specs.push(spec_for(&state, dialect, &RunTarget::Stateless, Fields::new("body", body)).await?);
    }
    let runs = state.runs.clone();
    to_its_end(&state, "make a batch of runs", async move {
        let mut made = Vec::with_capacity(specs.len());
        for spec in specs {
            made.push(run_json(&runs.create_background(spec).await?, dialect));
        }
        Ok::<_, ApiError>(Json(made.into()))
    })
    .await
}

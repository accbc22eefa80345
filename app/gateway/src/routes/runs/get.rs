//! `GET .../runs/{r}`.

use axum::Json;
use axum::extract::State;

use crate::dialect::Dialect;
use crate::extract::Ids;
use crate::reads::{require_run, require_thread};
use crate::routes::{Answer, App};
use crate::wire::run_json;

pub(crate) async fn get(State(state): App, dialect: Dialect, ids: Ids) -> Answer {
    let thread = ids.thread()?;
    let run = ids.run()?;
    if !dialect.is_platform() {
        require_thread(&state, &thread).await?;
    }
    Ok(Json(run_json(
        &require_run(&state, &thread, &run, dialect).await?,
        dialect,
    )))
}

//! `GET .../runs/{r}`.

use axum::Json;
use axum::extract::State;

use crate::dialect::Dialect;
use crate::extract::Ids;
use crate::queries::threads::{require_run, require_thread};
use crate::responses::queued_run_json;
use crate::routes::{App, JsonResult};

pub(crate) async fn get(State(state): App, dialect: Dialect, ids: Ids) -> JsonResult {
    let thread = ids.thread()?;
    let run = ids.run()?;
    if !dialect.is_platform() {
        require_thread(&state, &thread).await?;
    }
    let run = require_run(&state, &thread, &run, dialect).await?;
    let reasons = state.queue_reasons(std::slice::from_ref(&run)).await?;
    Ok(Json(queued_run_json(&run, &reasons, dialect)))
}

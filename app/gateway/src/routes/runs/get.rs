//! `GET .../runs/{r}`.

use axum::extract::State;
use axum::response::IntoResponse;

use crate::dialect::Dialect;
use crate::extract::Ids;
use crate::queries::threads::{require_run, require_thread};
use crate::responses::{RunView, SharingJson};
use crate::routes::{App, ResponseResult};

pub(crate) async fn get(State(state): App, dialect: Dialect, ids: Ids) -> ResponseResult {
    let thread = ids.thread()?;
    let run = ids.run()?;
    if !dialect.is_platform() {
        require_thread(&state, &thread).await?;
    }
    let run = require_run(&state, &thread, &run, dialect).await?;
    let reasons = state.queue_reasons(std::slice::from_ref(&run)).await?;
    Ok(SharingJson(
        RunView::queued(&run, &reasons, dialect),
        vec![run.kwargs.to_bytes()],
    )
    .into_response())
}

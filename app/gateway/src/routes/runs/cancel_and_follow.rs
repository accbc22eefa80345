//! `POST .../runs/{r}/stream`: a run's events, after a cancel if the query requests one.

use axum::extract::State;
use axum::http::HeaderMap;

use super::cancel::ACTIONS;
use super::{cancel, follow};
use crate::dialect::Dialect;
use crate::extract::{Ids, Query};
use crate::routes::{App, ResponseResult};

/// Streams the events of a run. With `action` it first cancels the run; with `wait` too, the
/// response is that of the cancel.
pub(crate) async fn cancel_and_follow(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    query: Query,
    headers: HeaderMap,
) -> ResponseResult {
    if query.word("action", ACTIONS)?.is_some() {
        let waits = query.flag("wait")?.unwrap_or_default();
        let cancelled = cancel(State(state.clone()), dialect, ids.clone(), query.clone()).await?;
        if waits {
            return Ok(cancelled);
        }
    }
    follow(State(state), dialect, ids, query, headers).await
}

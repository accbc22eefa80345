//! Control routes that all fakes have.

use std::collections::HashMap;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use http::StatusCode;

use super::{Call, Calls, Fault, Faults};

/// Builds `GET` and `DELETE /_fake/calls`, and `POST` and `DELETE /_fake/faults` with a body
/// `{method: [fault]}`.
pub fn control_routes(calls: Calls, faults: Faults) -> Router {
    let of_calls = get(async |State(calls): State<Calls>| Json::<Vec<Call>>(calls.all())).delete(
        async |State(calls): State<Calls>| {
            calls.clear();
            StatusCode::NO_CONTENT
        },
    );
    let of_faults = axum::routing::post(
        async |State(faults): State<Faults>, Json(script): Json<HashMap<String, Vec<Fault>>>| {
            for (method, of_method) in script {
                faults.script(method, of_method);
            }
            StatusCode::NO_CONTENT
        },
    )
    .delete(async |State(faults): State<Faults>| {
        faults.clear();
        StatusCode::NO_CONTENT
    });
    Router::new()
        .route("/_fake/calls", of_calls)
        .with_state(calls)
        .merge(
            Router::new()
                .route("/_fake/faults", of_faults)
                .with_state(faults),
        )
}

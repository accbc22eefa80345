//! Routes of DeerFlow's dialect only, for its web UI.

mod absent_features;
mod admin;
mod channels;
mod memory;
mod operations;
mod runs;
mod scheduled_tasks;
mod settings;
mod sign_in;
mod threads;

use crate::openapi::groups::SETTINGS;
use crate::openapi::{Routes, get};
use crate::responses::documented::Document;

/// Builds the routes.
pub(super) fn routes() -> Routes {
    let document = get(
        "/openapi.json",
        "get_whole_openapi",
        "Returns the OpenAPI document of both dialects.",
    )
    .tag(SETTINGS);
    settings::routes()
        .merge(sign_in::routes())
        .merge(admin::routes())
        .merge(channels::routes())
        .merge(absent_features::routes())
        .merge(memory::routes())
        .merge(threads::routes())
        .merge(scheduled_tasks::routes())
        .merge(runs::routes())
        .described(
            document
                .returns::<Document>("An OpenAPI document.")
                .fails_with(&[404])
                .without_handler(),
        )
}

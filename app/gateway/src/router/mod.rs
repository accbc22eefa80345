//! The table of routes. Three prefixes share one set of handlers; every route describes itself on the way in.

mod admin;
mod assistants;
mod deerflow;
mod memory;
mod runs;
mod system;
mod threads;

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::{Extension, Router};
use tower::util::option_layer;

use crate::cors::cors;
use crate::edge::{Door, edge};
use crate::error::ApiError;
use crate::extract::BODY_LIMIT;
use crate::openapi::{Document, Routes};
use crate::state::GatewayState;

pub(crate) use deerflow::GROUPS;

/// All routes over `state`.
pub fn router(state: Arc<GatewayState>) -> Router {
    let (root, of_root) = shared().merge(root()).split_for_parts();
    let (deerflow, of_deerflow) = shared().merge(deerflow::routes()).split_for_parts();
    let deerflow = deerflow.route_layer(Extension(Document::of_both(of_root.clone(), of_deerflow)));
    root.layer(Extension(Document::of_platform(of_root)))
        .nest("/api/langgraph", deerflow.clone())
        .nest("/api", deerflow)
        .fallback(async || ApiError::RouteNotFound)
        .method_not_allowed_fallback(async || ApiError::MethodNotAllowed)
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .layer(from_fn_with_state(
            Door {
                visitors: state.visitors.clone(),
                access: state.access.clone(),
            },
            edge,
        ))
        .layer(option_layer(cors(&state.visitors)))
        .with_state(state)
}

/// What the root and DeerFlow's dialect say of themselves.
#[cfg(test)]
pub(crate) fn described() -> (utoipa::openapi::OpenApi, utoipa::openapi::OpenApi) {
    (
        shared().merge(root()).into_openapi(),
        shared().merge(deerflow::routes()).into_openapi(),
    )
}

/// Routes of both dialects.
fn shared() -> Routes {
    threads::shared()
        .merge(runs::shared())
        .merge(assistants::shared())
        .merge(system::shared())
        .merge(admin::shared())
}

/// Routes of the root only.
fn root() -> Routes {
    assistants::root()
        .merge(threads::root())
        .merge(runs::root())
        .merge(memory::by_clock())
        .merge(memory::items())
        .merge(system::root())
}

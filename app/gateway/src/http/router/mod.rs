//! The route table. Three prefixes share one set of handlers, and each route is registered together
//! with its OpenAPI description.

mod admin;
mod assistants;
mod deerflow;
mod flows;
mod protocol;
mod runs;
mod store;
mod system;
mod threads;

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::{Extension, Router};
use tower::util::option_layer;

use crate::error::ApiError;
use crate::extract::BODY_LIMIT;
use crate::guard::answer_memory::{AnswerMemory, limit_answer};
use crate::guard::body_memory::{BodyMemory, limit_body};
use crate::guard::permissions::check_permission;
use crate::guard::request_guard::{RequestGuard, guard_request};
use crate::http::cors::cors;
use crate::http::trace_ids::add_trace_id;
#[cfg(test)]
use crate::openapi::Descriptions;
use crate::openapi::{Document, Routes};
use crate::state::GatewayState;

/// Builds the router over `state`.
pub fn router(state: Arc<GatewayState>) -> Router {
    let limits = state.info.field_limits();
    let (root, of_root) = shared().merge(root()).split();
    let of_root = Arc::new(of_root);
    let (deerflow, of_deerflow) = shared().merge(deerflow::routes()).split();
    let permission = from_fn_with_state(state.security.access.clone(), check_permission);
    let root = root.route_layer(permission.clone());
    let deerflow = deerflow.route_layer(permission);
    let deerflow = deerflow.route_layer(Extension(Document::of_both(of_root.clone(), of_deerflow)));
    root.layer(Extension(Document::of_platform(of_root)))
        .nest("/api/langgraph", deerflow.clone())
        .nest("/api", deerflow)
        .fallback(async || ApiError::RouteNotFound)
        .method_not_allowed_fallback(async || ApiError::MethodNotAllowed)
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .layer(from_fn_with_state(
            AnswerMemory::new(limits.answer_memory_mb << 20),
            limit_answer,
        ))
        .layer(from_fn_with_state(
            BodyMemory::new(limits.request_memory_mb << 20),
            limit_body,
        ))
        .layer(from_fn_with_state(
            RequestGuard {
                origin_policy: state.security.origin_policy.clone(),
                authenticator: state.security.authenticator.clone(),
                trusted_proxies: state.security.trusted_proxies.clone(),
                insecure_persistence: state.security.insecure_persistence,
                tasks: state.process.tasks.clone(),
            },
            guard_request,
        ))
        .layer(option_layer(cors(&state.security.origin_policy)))
        .layer(option_layer(state.observability.trace_ids.then(|| {
            from_fn_with_state(state.process.ids.clone(), add_trace_id)
        })))
        .with_state(state)
}

/// Descriptions of the root and of DeerFlow's dialect.
#[cfg(test)]
pub(crate) fn described() -> [Descriptions; 2] {
    [root(), deerflow::routes()].map(|own| shared().merge(own).split().1)
}

/// Routes of both dialects.
fn shared() -> Routes {
    threads::shared()
        .merge(runs::shared())
        .merge(protocol::shared())
        .merge(assistants::shared())
        .merge(flows::shared())
        .merge(system::shared())
        .merge(admin::shared())
}

/// Routes of the root only.
fn root() -> Routes {
    assistants::root()
        .merge(threads::root())
        .merge(runs::root())
        .merge(store::cron_routes())
        .merge(store::items())
        .merge(system::root())
}

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

use axum::middleware::from_fn_with_state;
use axum::routing::get;
use axum::{Extension, Router};

use crate::error::ApiError;
use crate::guard::answer_memory::AnswerMemory;
use crate::guard::body_memory::BodyMemory;
use crate::guard::pipeline::{Pipeline, check_request};
use crate::guard::request_guard::RequestGuard;
use crate::http::cors::cors;
use crate::http::trace_ids::add_trace_id;
#[cfg(test)]
use crate::openapi::Descriptions;
use crate::openapi::{Document, Routes};
use crate::routes::docs;
use crate::state::GatewayState;

/// Builds the router over `state`.
pub fn router(state: Arc<GatewayState>) -> Router {
    let limits = state.info.field_limits();
    let (root, of_root) = shared().merge(root()).split();
    let of_root = Arc::new(of_root);
    let (deerflow, of_deerflow) = shared().merge(deerflow::routes()).split();
    let document = |document: Document| get(docs::openapi).layer(Extension(document));
    let of_both = Document::of_both(of_root.clone(), of_deerflow);
    let deerflow = deerflow.route("/openapi.json", document(of_both));
    let pipeline = Pipeline {
        guard: RequestGuard {
            origin_policy: state.security.origin_policy.clone(),
            authenticator: state.security.authenticator.clone(),
            trusted_proxies: state.security.trusted_proxies.clone(),
            insecure_persistence: state.security.insecure_persistence,
            tasks: state.process.tasks.clone(),
        },
        bodies: BodyMemory::new(limits.request_memory_mb << 20),
        answers: AnswerMemory::new(limits.answer_memory_mb << 20),
        access: state.security.access.clone(),
    };
    let mut router = root
        .route("/openapi.json", document(Document::of_platform(of_root)))
        .nest("/api/langgraph", deerflow.clone())
        .nest("/api", deerflow)
        .fallback(async || ApiError::RouteNotFound)
        .method_not_allowed_fallback(async || ApiError::MethodNotAllowed)
        .layer(from_fn_with_state(Arc::new(pipeline), check_request));
    if let Some(cors) = cors(&state.security.origin_policy) {
        router = router.layer(cors);
    }
    if state.observability.trace_ids {
        let ids = state.process.ids.clone();
        router = router.layer(from_fn_with_state(ids, add_trace_id));
    }
    router.with_state(state)
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

//! The table of routes. Three prefixes share one set of handlers; what the root has describes itself on the way in.

mod admin;
mod assistants;
mod memory;
mod runs;
mod system;
mod threads;

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use axum::{Extension, Router};
use tower::util::option_layer;

use crate::cors::cors;
use crate::edge::{Door, edge};
use crate::error::ApiError;
use crate::extract::BODY_LIMIT;
use crate::openapi::{Document, Routes};
use crate::routes::threads::goal;
use crate::routes::{
    agents, aids, artifacts, catalog, console, feed, feedback, mcp, memory as memories, meta, runs as runs_of, skills,
    threads as threads_of, uploads,
};
use crate::state::GatewayState;

/// All routes over `state`.
pub fn router(state: Arc<GatewayState>) -> Router {
    let (root, said) = shared().merge(root()).split_for_parts();
    let deerflow = Router::from(shared()).merge(deerflow());
    root.layer(Extension(Document::of(&said)))
        .nest("/api/langgraph", deerflow.clone())
        .nest("/api", deerflow)
        .fallback(async || ApiError::RouteNotFound)
        .method_not_allowed_fallback(async || ApiError::MethodNotAllowed)
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .layer(from_fn_with_state(Door { visitors: state.visitors.clone(), access: state.access.clone() }, edge))
        .layer(option_layer(cors(&state.visitors)))
        .with_state(state)
}

/// What the root says of itself.
#[cfg(test)]
pub(crate) fn described() -> utoipa::openapi::OpenApi {
    shared().merge(root()).into_openapi()
}

/// Routes of both dialects.
fn shared() -> Routes {
    threads::shared().merge(runs::shared()).merge(assistants::shared()).merge(system::shared()).merge(admin::shared())
}

/// Routes of the root only.
fn root() -> Routes {
    assistants::root().merge(threads::root()).merge(runs::root()).merge(memory::by_clock()).merge(memory::items()).merge(system::root())
}

/// What DeerFlow's web UI asks for besides.
fn deerflow() -> Router<Arc<GatewayState>> {
    Router::new()
        .route("/v1/auth/me", get(meta::me))
        .route("/v1/auth/setup-status", get(meta::setup_status))
        .route("/v1/auth/providers", get(meta::auth_providers))
        .route("/console/stats", get(console::stats))
        .route("/console/runs", get(console::runs))
        .route("/console/usage", get(console::usage))
        .route("/models", get(catalog::models))
        .route("/models/{name}", get(catalog::model))
        .route("/features", get(catalog::features))
        .route("/suggestions/config", get(catalog::suggestions_config))
        .route("/skills", get(skills::list))
        .route("/skills/install", post(skills::install))
        .route("/skills/reload", post(skills::reload))
        .route("/skills/custom", get(skills::list_own))
        .route("/skills/custom/{name}", get(skills::get_own).put(skills::put_own).delete(skills::delete_own))
        .route("/skills/custom/{name}/history", get(skills::history))
        .route("/skills/custom/{name}/rollback", post(skills::roll_back))
        .route("/skills/{name}", get(skills::get).put(skills::put))
        .route("/agents", get(agents::list).post(agents::create))
        .route("/agents/check", get(agents::check))
        .route("/agents/{name}", get(agents::get).put(agents::update).delete(agents::delete))
        .route("/user-profile", get(agents::profile).put(agents::save_profile))
        .route("/channels/providers", get(catalog::channel_providers))
        .route("/threads/{thread_id}/suggestions", post(aids::suggest))
        .route("/threads/{thread_id}/goal", get(goal::get).put(goal::put).delete(goal::delete))
        .route("/threads/{thread_id}/compact", post(threads_of::compact))
        .route("/input-polish", post(aids::polish))
        .route("/mcp/config", get(mcp::get).put(mcp::put).patch(mcp::patch))
        .route("/mcp/cache/reset", post(mcp::reset))
        .route("/threads/{thread_id}/mcp-tasks", get(mcp::tasks))
        .route("/threads/{thread_id}/mcp-tasks/{task_id}", get(mcp::task))
        .route("/threads/{thread_id}/mcp-tasks/{task_id}/cancel", post(mcp::task))
        .route("/memory", get(memories::get).delete(memories::clear))
        .route("/memory/reload", post(memories::reload))
        .route("/memory/export", get(memories::get))
        .route("/memory/import", post(memories::import))
        .route("/memory/config", get(memories::config))
        .route("/memory/status", get(memories::status))
        .route("/memory/facts", post(memories::add))
        .route("/memory/facts/{fact_id}", axum::routing::patch(memories::correct).delete(memories::remove))
        .route("/threads/{thread_id}/uploads/limits", get(catalog::upload_limits))
        .route("/threads/{thread_id}/uploads", post(uploads::post))
        .route("/threads/{thread_id}/uploads/list", get(uploads::list))
        .route("/threads/{thread_id}/uploads/{filename}", axum::routing::delete(uploads::delete))
        .route("/threads/{thread_id}/artifacts/{*path}", get(artifacts::get).put(artifacts::put))
        .route("/threads/{thread_id}/messages", get(feed::messages))
        .route("/threads/{thread_id}/messages/page", get(feed::page))
        .route("/threads/{thread_id}/runs/regenerate/prepare", post(runs_of::prepare_regenerate))
        .route("/threads/{thread_id}/runs/edit-regenerate/prepare", post(runs_of::prepare_edit))
        .route("/threads/{thread_id}/runs/{run_id}/messages", get(feed::run_messages))
        .route("/threads/{thread_id}/runs/{run_id}/events", get(feed::run_events))
        .route("/threads/{thread_id}/runs/{run_id}/workspace-changes", get(feed::workspace_changes))
        .route(
            "/threads/{thread_id}/runs/{run_id}/feedback",
            get(feedback::list).put(feedback::put).post(feedback::post).delete(feedback::delete),
        )
        .route("/threads/{thread_id}/runs/{run_id}/feedback/stats", get(feedback::stats))
        .route("/threads/{thread_id}/runs/{run_id}/feedback/{feedback_id}", axum::routing::delete(feedback::delete))
        .route("/threads/{thread_id}/token-usage", get(feed::token_usage))
}

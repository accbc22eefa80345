//! The table of routes. Three prefixes share one set of handlers.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, patch, post};
use tower::util::option_layer;

use crate::cors::cors;
use crate::edge::{Door, edge};
use crate::error::ApiError;
use crate::extract::BODY_LIMIT;
use crate::routes::{artifacts, assistants, catalog, crons, feed, feedback, meta, openapi, runs, store, threads, uploads};
use crate::state::GatewayState;

type Routes = Router<Arc<GatewayState>>;

/// All routes over `state`.
pub fn router(state: Arc<GatewayState>) -> Router {
    let deerflow = shared().merge(deerflow());
    Router::new()
        .merge(shared())
        .merge(root())
        .nest("/api/langgraph", deerflow.clone())
        .nest("/api", deerflow)
        .fallback(async || ApiError::RouteNotFound)
        .method_not_allowed_fallback(async || ApiError::MethodNotAllowed)
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .layer(from_fn_with_state(Door { visitors: state.visitors.clone(), access: state.access.clone() }, edge))
        .layer(option_layer(cors(&state.visitors)))
        .with_state(state)
}

/// Routes of both dialects.
fn shared() -> Routes {
    Router::new()
        .route("/threads", post(threads::create))
        .route("/threads/search", post(threads::search))
        .route("/threads/count", post(threads::count))
        .route("/threads/prune", post(threads::prune))
        .route("/threads/{thread_id}", get(threads::get).patch(threads::patch).delete(threads::delete))
        .route("/threads/{thread_id}/copy", post(threads::copy))
        .route("/threads/{thread_id}/state", get(threads::state).post(threads::update_state))
        .route("/threads/{thread_id}/state/checkpoint", post(threads::state_at_body))
        .route("/threads/{thread_id}/state/{checkpoint_id}", get(threads::state_at))
        .route("/threads/{thread_id}/history", get(threads::history_by_query).post(threads::history_by_body))
        .route("/threads/{thread_id}/runs", get(runs::list).post(runs::create))
        .route("/threads/{thread_id}/runs/stream", post(runs::stream))
        .route("/threads/{thread_id}/runs/wait", post(runs::wait))
        .route("/threads/{thread_id}/runs/{run_id}", get(runs::get).delete(runs::delete))
        .route("/threads/{thread_id}/runs/{run_id}/cancel", post(runs::cancel))
        .route("/threads/{thread_id}/runs/{run_id}/join", get(runs::join))
        .route("/threads/{thread_id}/runs/{run_id}/stream", get(runs::follow))
        .route("/runs", post(runs::create_stateless))
        .route("/runs/stream", post(runs::stream_stateless))
        .route("/runs/wait", post(runs::wait_stateless))
        .route("/runs/cancel", post(runs::cancel_many))
        .route("/assistants/search", post(assistants::search))
        .route("/assistants/count", post(assistants::count))
        .route("/assistants/{assistant_id}", get(assistants::get))
        .route("/assistants/{assistant_id}/graph", get(assistants::graph))
        .route("/assistants/{assistant_id}/schemas", get(assistants::schemas))
        .route("/ok", get(meta::ok))
        .route("/info", get(meta::info))
}

/// Routes of the root only.
fn root() -> Routes {
    Router::new()
        .route("/", get(meta::ok))
        .route("/health", get(meta::health))
        .route("/openapi.json", get(openapi::openapi))
        .route("/runs/batch", post(runs::batch))
        .route("/threads/{thread_id}/stream", get(runs::follow_thread))
        .route("/assistants", post(assistants::create))
        .route("/assistants/{assistant_id}", patch(assistants::patch).delete(assistants::delete))
        .route("/assistants/{assistant_id}/versions", post(assistants::versions))
        .route("/assistants/{assistant_id}/latest", post(assistants::set_latest))
        .route("/assistants/{assistant_id}/subgraphs", get(assistants::subgraphs))
        .route("/assistants/{assistant_id}/subgraphs/{namespace}", get(assistants::subgraphs))
        .route("/metrics", get(meta::metrics))
        .route("/store/items", get(store::get).put(store::put).delete(store::delete))
        .route("/store/items/search", post(store::search))
        .route("/store/namespaces", post(store::namespaces))
        .route("/threads/{thread_id}/runs/crons", post(crons::create_on_thread))
        .route("/runs/crons", post(crons::create))
        .route("/runs/crons/search", post(crons::search))
        .route("/runs/crons/count", post(crons::count))
        .route("/runs/crons/{cron_id}", get(crons::get).patch(crons::patch).delete(crons::delete))
}

/// What DeerFlow's web UI asks for besides.
fn deerflow() -> Routes {
    Router::new()
        .route("/v1/auth/me", get(meta::me))
        .route("/v1/auth/setup-status", get(meta::setup_status))
        .route("/v1/auth/providers", get(meta::auth_providers))
        .route("/models", get(catalog::models))
        .route("/models/{name}", get(catalog::model))
        .route("/features", get(catalog::features))
        .route("/suggestions/config", get(catalog::suggestions_config))
        .route("/skills", get(catalog::skills))
        .route("/agents", get(catalog::agents))
        .route("/channels/providers", get(catalog::channel_providers))
        .route("/threads/{thread_id}/suggestions", post(catalog::suggest))
        .route("/threads/{thread_id}/uploads/limits", get(catalog::upload_limits))
        .route("/threads/{thread_id}/uploads", post(uploads::post))
        .route("/threads/{thread_id}/uploads/list", get(uploads::list))
        .route("/threads/{thread_id}/uploads/{filename}", axum::routing::delete(uploads::delete))
        .route("/threads/{thread_id}/artifacts/{*path}", get(artifacts::get).put(artifacts::put))
        .route("/threads/{thread_id}/messages", get(feed::messages))
        .route("/threads/{thread_id}/messages/page", get(feed::page))
        .route("/threads/{thread_id}/runs/regenerate/prepare", post(runs::prepare_regenerate))
        .route("/threads/{thread_id}/runs/edit-regenerate/prepare", post(runs::prepare_edit))
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

//! The outermost layer: who acts, how we speak, and how failures look.

use std::panic::AssertUnwindSafe;

use axum::extract::Request;
use axum::http::header;
use axum::middleware::Next;
use axum::response::Response;
use futures_util::FutureExt;
use harness::runtime::actor_context::{ActorContext, DEFAULT_USER_ID, scope};
use harness::runtime::tasks::panic_text;

use crate::dialect::Dialect;
use crate::error::ApiError;

/// Binds the actor and the dialect, turns a panic into an answer, and renders the error of a response in the dialect.
pub(crate) async fn edge(mut request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let dialect = if path == "/api" || path.starts_with("/api/") { Dialect::DeerFlow } else { Dialect::Platform };
    request.extensions_mut().insert(dialect);
    let work = AssertUnwindSafe(scope(actor(), next.run(request))).catch_unwind();
    let response = match work.await {
        Ok(response) => response,
        Err(panic) => return ApiError::Internal(format!("a handler panicked: {}", panic_text(panic.as_ref()))).render(dialect),
    };
    let Some(error) = response.extensions().get::<ApiError>() else { return response };
    let mut rendered = error.render(dialect);
    if let Some(allow) = response.headers().get(header::ALLOW) {
        rendered.headers_mut().insert(header::ALLOW, allow.clone());
    }
    rendered
}

/// With authentication switched off everybody is the same user.
fn actor() -> ActorContext {
    ActorContext { auth_source: Some("disabled".to_owned()), ..ActorContext::user(DEFAULT_USER_ID) }
}

//! The outermost layer: checks host, origin and key, selects the dialect, and renders errors.

use std::panic::AssertUnwindSafe;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::Response;
use futures_util::FutureExt;
use harness::runtime::actor_context::scope;
use harness::runtime::compute::offloading_all;
use harness::runtime::tasks::panic_text;
use tokio::time::Instant;

use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::guard::auth::{Authenticator, Peer};
use crate::guard::content_coding::require_plain;
use crate::guard::host::requested_host;
use crate::guard::origin_policy::OriginPolicy;
use crate::observability::metrics::request_answered;

/// Host and origin policy, and authentication.
#[derive(Debug, Clone)]
pub(crate) struct RequestGuard {
    pub(crate) origin_policy: OriginPolicy,
    pub(crate) authenticator: Authenticator,
}

/// Handles a request and records its metrics.
pub(crate) async fn guard_request(
    State(guard): State<RequestGuard>,
    request: Request,
    next: Next,
) -> Response {
    let (since, method) = (Instant::now(), request.method().clone());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let response = respond(guard, request, next).await;
    request_answered(
        &method,
        route.as_ref().map(MatchedPath::as_str),
        response.status(),
        since.elapsed(),
    );
    response
}

/// Rejects requests of untrusted pages, binds the actor and the dialect, turns a panic into an
/// error response, and renders errors in the dialect.
async fn respond(guard: RequestGuard, mut request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let dialect = if path == "/api" || path.starts_with("/api/") {
        Dialect::DeerFlow
    } else {
        Dialect::Platform
    };
    if let Err(refused) = check(&guard.origin_policy, &request) {
        return refused.render(dialect);
    }
    let peer = request.extensions().get::<Peer>().copied();
    let actor = match guard
        .authenticator
        .actor(path, request.headers(), peer)
        .await
    {
        Ok(actor) => actor,
        Err(refused) => return refused.render(dialect),
    };
    if let Err(refused) = require_plain(request.headers()) {
        return refused.render(dialect);
    }
    request.extensions_mut().insert(dialect);
    let work = AssertUnwindSafe(scope(actor, offloading_all(next.run(request)))).catch_unwind();
    let response = match work.await {
        Ok(response) => response,
        Err(panic) => {
            return ApiError::Internal(format!(
                "a handler panicked: {}",
                panic_text(panic.as_ref())
            ))
            .render(dialect);
        }
    };
    let Some(error) = response.extensions().get::<ApiError>() else {
        return response;
    };
    let mut rendered = error.render(dialect);
    if let Some(allow) = response.headers().get(header::ALLOW) {
        rendered.headers_mut().insert(header::ALLOW, allow.clone());
    }
    rendered
}

/// Checks the host and the origin of a request.
fn check(origin_policy: &OriginPolicy, request: &Request) -> Result<(), ApiError> {
    let host = requested_host(request.version(), request.uri(), request.headers())?;
    origin_policy.check(request.method(), host, request.headers())
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::{Body, to_bytes};
    use axum::http::StatusCode;
    use axum::middleware::from_fn_with_state;
    use axum::routing::get;
    use deerflow_domain::api_keys::InMemoryApiKeyStore;
    use harness::clock::SystemClock;
    use harness::runtime::actor_context::required_user_id;
    use tower::ServiceExt;

    use std::sync::Arc;

    use super::*;
    use crate::guard::auth::KeyRule;
    use crate::guard::origin_policy::Hosts;

    async fn respond(path: &str) -> (StatusCode, String) {
        let broken = async || -> ApiError { panic!("boom at /home/secret") };
        let who =
            async || required_user_id().map_err(|error| ApiError::Internal(error.to_string()));
        let origin_policy = OriginPolicy::new(Hosts::LoopbackAnd(vec![]), vec![]);
        let authenticator = Authenticator::new(
            KeyRule::Optional,
            Arc::new(InMemoryApiKeyStore::default()),
            Arc::new(SystemClock),
        );
        let router = Router::new()
            .route("/broken", get(broken))
            .route("/api/broken", get(broken))
            .route("/who", get(who))
            .layer(from_fn_with_state(
                RequestGuard {
                    origin_policy,
                    authenticator,
                },
                guard_request,
            ));
        let response = router
            .oneshot(
                Request::builder()
                    .uri(path)
                    .header("host", "localhost")
                    .body(Body::empty())
                    .expect("a request"),
            )
            .await
            .expect("an answer");
        let status = response.status();
        let body = to_bytes(response.into_body(), 10_000)
            .await
            .expect("a body");
        (status, String::from_utf8(body.to_vec()).expect("UTF-8"))
    }

    #[tokio::test]
    async fn panic_is_a_json_500_without_details() {
        for path in ["/broken", "/api/broken"] {
            assert_eq!(
                respond(path).await,
                (
                    StatusCode::INTERNAL_SERVER_ERROR,
                    r#"{"detail":"Internal Server Error"}"#.to_owned()
                )
            );
        }
    }

    #[tokio::test]
    async fn handlers_act_for_the_default_user() {
        assert_eq!(
            respond("/who").await,
            (StatusCode::OK, "default".to_owned())
        );
    }
}

//! The outermost layer: checks host, origin and key, selects the dialect, and renders errors.

use std::panic::AssertUnwindSafe;

use axum::extract::{MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::FutureExt;
use harness::runtime::actor_context::{ActorContext, scope};
use harness::runtime::compute::offloading_all;
use harness::runtime::tasks::panic_text;
use tokio::time::Instant;

use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::guard::auth::{Access, Authenticator};
use crate::guard::content_coding::require_plain;
use crate::guard::cookies::{SESSION, cookie};
use crate::guard::host::requested_host;
use crate::guard::origin_policy::{OriginPolicy, PageRule, is_from_secure_page};
use crate::guard::paths::{PathClass, class_of};
use crate::guard::response_headers;
use crate::guard::trusted_proxies::TrustedProxies;
use crate::guard::web_client::{Peer, WebClient};
use crate::observability::metrics::request_answered;

/// Host and origin policy, and authentication.
#[derive(Debug, Clone)]
pub(crate) struct RequestGuard {
    pub(crate) origin_policy: OriginPolicy,
    pub(crate) authenticator: Authenticator,
    pub(crate) trusted_proxies: TrustedProxies,
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
async fn respond(guard: RequestGuard, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let dialect = if path == "/api" || path.starts_with("/api/") {
        Dialect::DeerFlow
    } else {
        Dialect::Platform
    };
    let mut response = match admit(&guard, &parts).await {
        Ok((actor, client)) => {
            parts.extensions.insert(dialect);
            parts.extensions.insert(client);
            handle(actor, dialect, Request::from_parts(parts, body), next).await
        }
        Err(refused) => refused.render(dialect),
    };
    response_headers::add(&path, &mut response);
    response
}

/// Decides whether and as whom a request is handled.
async fn admit(
    guard: &RequestGuard,
    request: &Parts,
) -> Result<(ActorContext, WebClient), ApiError> {
    let (method, headers) = (&request.method, &request.headers);
    let host = requested_host(request.version, &request.uri, headers)?;
    let peer = request.extensions.get::<Peer>().copied();
    let client = WebClient::of(peer, host, headers, &guard.trusted_proxies);
    let class = class_of(request.uri.path());
    let policy = &guard.origin_policy;
    policy.check_page(method, &client, headers, page_rule(class, headers))?;
    let access = guard.authenticator.access(class, headers, client.address);
    let actor = match access.await? {
        Access::Open(actor) => {
            let is_secure = class == PathClass::SignIn && is_from_secure_page(headers);
            if !is_secure {
                policy.check_host(host, &client)?;
            }
            actor
        }
        Access::Program(actor) => actor,
    };
    require_plain(headers)?;
    Ok((actor, client))
}

/// Returns the rule for pages, by the path and the credentials that a browser adds by itself.
fn page_rule(class: PathClass, headers: &HeaderMap) -> PageRule {
    if class == PathClass::SignIn {
        PageRule::SignIn
    } else if cookie(headers, SESSION).is_some() {
        PageRule::SameOrigin
    } else {
        PageRule::SameMachine
    }
}

/// Calls the handler and renders its error.
async fn handle(actor: ActorContext, dialect: Dialect, request: Request, next: Next) -> Response {
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
                    trusted_proxies: TrustedProxies::default(),
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

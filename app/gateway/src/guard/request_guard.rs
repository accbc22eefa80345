//! The outermost layer: checks host, origin and key, selects the dialect, and renders errors.

use std::panic::AssertUnwindSafe;

use axum::extract::{MatchedPath, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use futures_util::FutureExt;
use harness::runtime::actor_context::{ActorContext, scope};
use harness::runtime::compute::offloading_all;
use harness::runtime::tasks::{Tasks, panic_text};
use tokio::time::Instant;

use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::guard::auth::{Access, Authenticator, CurrentSession};
use crate::guard::content_coding::require_plain;
use crate::guard::cookies::{CookieScope, SESSION, cookie};
use crate::guard::host::requested_host;
use crate::guard::origin_policy::{OriginPolicy, PageRule, is_from_secure_page};
use crate::guard::paths::{PathClass, class_of};
use crate::guard::session_stream::EndlessBody;
use crate::guard::trusted_proxies::TrustedProxies;
use crate::guard::web_client::{Peer, WebClient};
use crate::guard::{response_headers, session_stream};
use crate::observability::metrics::request_answered;

/// Rules of the guard.
#[derive(Debug)]
pub(crate) struct RequestGuard {
    pub(crate) origin_policy: OriginPolicy,
    pub(crate) authenticator: Authenticator,
    pub(crate) trusted_proxies: TrustedProxies,
    /// Permits persistent cookies over http.
    pub(crate) insecure_persistence: bool,
    /// Spawner of tasks that read the streams of ended sessions.
    pub(crate) tasks: Tasks,
}

/// Handles a request and records its metrics.
pub(crate) async fn guard_request<F: Future<Output = Response>>(
    guard: &RequestGuard,
    request: Request,
    next: impl FnOnce(Request) -> F,
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
async fn respond<F: Future<Output = Response>>(
    guard: &RequestGuard,
    request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let dialect = if path == "/api" || path.starts_with("/api/") {
        Dialect::DeerFlow
    } else {
        Dialect::Platform
    };
    let mut response = match admit(guard, &parts).await {
        Ok(Admitted { access, client }) => {
            let cookies = CookieScope::of(&client, guard.insecure_persistence);
            parts.extensions.insert(dialect);
            parts.extensions.insert(client);
            let (actor, session) = match access {
                Access::Open(actor) | Access::Public(actor) | Access::Program(actor) => {
                    (actor, None)
                }
                Access::Person(session) => (session.actor(), Some(session)),
            };
            if let Some(session) = &session {
                parts.extensions.insert(session.clone());
            }
            let request = Request::from_parts(parts, body);
            let response = handle(actor, dialect, request, next).await;
            match session {
                Some(session) => bound(response, &session, cookies, guard),
                None => response,
            }
        }
        Err(refused) => refused.render(dialect),
    };
    response_headers::add(&path, &mut response);
    response
}

/// Result of the checks of a request.
struct Admitted {
    access: Access,
    client: WebClient,
}

/// Decides whether and as whom a request is handled.
async fn admit(guard: &RequestGuard, request: &Parts) -> Result<Admitted, ApiError> {
    let (method, headers) = (&request.method, &request.headers);
    let host = requested_host(request.version, &request.uri, headers)?;
    let peer = request.extensions.get::<Peer>().copied();
    let client = WebClient::of(peer, host, headers, &guard.trusted_proxies);
    let class = class_of(request.uri.path());
    let policy = &guard.origin_policy;
    policy.check_page(method, &client, headers, page_rule(class, headers))?;
    let access = guard.authenticator.access(class, request, client.address);
    let access = access.await?;
    // A foreign page may read whether the server is set up. To sign in, it has to prove its host.
    let is_proved =
        class == PathClass::SignIn && (method.is_safe() || is_from_secure_page(headers));
    if matches!(access, Access::Open(_)) && !is_proved {
        policy.check_host(host, &client)?;
    }
    require_plain(headers)?;
    Ok(Admitted { access, client })
}

/// Returns the rule for pages, by the path and the credentials that a browser adds by itself.
pub(crate) fn page_rule(class: PathClass, headers: &HeaderMap) -> PageRule {
    if class == PathClass::SignIn {
        PageRule::SignIn
    } else if cookie(headers, SESSION).is_some() {
        PageRule::SameOrigin
    } else {
        PageRule::SameMachine
    }
}

/// Binds a response to the session of its request: an open stream breaks when the session ends, and
/// the cookies of an extended session are sent again.
fn bound(
    mut response: Response,
    session: &CurrentSession,
    cookies: CookieScope,
    guard: &RequestGuard,
) -> Response {
    if !response.headers().contains_key(header::SET_COOKIE) {
        for cookie in session.renewed_cookies(cookies) {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
    }
    let sessions = guard.authenticator.sessions().clone();
    let token = session.token().to_owned();
    let has_ended = move || {
        let (sessions, token) = (sessions.clone(), token.clone());
        async move { sessions.has_ended(&token).await }
    };
    let is_endless = response.extensions().get::<EndlessBody>().is_some();
    let tasks = (!is_endless).then(|| guard.tasks.clone());
    response.map(|body| session_stream::bind(body, tasks, has_ended))
}

/// Calls the handler and renders its error.
async fn handle<F: Future<Output = Response>>(
    actor: ActorContext,
    dialect: Dialect,
    request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response {
    let work = AssertUnwindSafe(scope(actor, offloading_all(next(request)))).catch_unwind();
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
    use std::sync::Arc;

    use axum::Router;
    use axum::body::{Body, to_bytes};
    use axum::extract::State;
    use axum::http::StatusCode;
    use axum::middleware::{Next, from_fn_with_state};
    use axum::routing::get;
    use harness::runtime::actor_context::required_user_id;
    use tower::ServiceExt;

    use super::*;
    use crate::guard::auth::KeyRule;
    use crate::guard::auth::fixture::authenticator;
    use crate::guard::origin_policy::Hosts;

    async fn respond(path: &str) -> (StatusCode, String) {
        let broken = async || -> ApiError { panic!("boom at /home/secret") };
        let who =
            async || required_user_id().map_err(|error| ApiError::Internal(error.to_string()));
        let origin_policy = OriginPolicy::new(Hosts::LoopbackAnd(vec![]), vec![]);
        let authenticator = authenticator(KeyRule::Optional).0;
        let guard = RequestGuard {
            origin_policy,
            authenticator,
            trusted_proxies: TrustedProxies::default(),
            insecure_persistence: false,
            tasks: Tasks::new(),
        };
        let layer = from_fn_with_state(
            Arc::new(guard),
            async |State(guard): State<Arc<RequestGuard>>, request, next: Next| {
                guard_request(&guard, request, |request| next.run(request)).await
            },
        );
        let router = Router::new()
            .route("/broken", get(broken))
            .route("/api/broken", get(broken))
            .route("/who", get(who))
            .layer(layer);
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

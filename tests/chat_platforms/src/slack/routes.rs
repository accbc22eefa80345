//! HTTP routes of the fake.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use serde::Deserialize;
use serde_json::json;

use super::answer::{Failure, Outcome, broken, json_response, respond};
use super::params::Params;
use super::shared::Shared;
use super::{connection, files, methods};
use crate::common::{Fault, accept_socket};

/// Builds the routes.
pub(super) fn routes(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/api/{method}", post(call).get(call))
        .route("/link/", get(link))
        .route("/upload/v1/{id}", post(upload))
        .route("/files-pri/{id}/{*name}", get(download))
        .route("/login", get(async || login_page()))
        .layer(DefaultBodyLimit::disable())
        .with_state(shared)
}

async fn call(
    State(shared): State<Arc<Shared>>,
    Path(method): Path<String>,
    headers: HeaderMap,
    uri: Uri,
    body: Bytes,
) -> Response {
    let scopes = shared.options.lock().scopes.join(",");
    let decoded = Params::decode(&method, &headers, uri.query().unwrap_or_default(), &body);
    let params = match decoded {
        Ok(params) => params,
        Err(failure) => return finish(&shared, &method, &Params::default(), Err(failure), &scopes),
    };
    let perform = || {
        let token = methods::token(&headers, &params);
        methods::call(&shared, &method, &params, token.as_deref())
    };
    match shared.faults.take(&method) {
        Some(Fault::Answer {
            status,
            body,
            headers,
        }) => {
            let recorded = methods::recorded(&params);
            shared.calls.record(&method, recorded, i64::from(status));
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
            let mut response = json_response(status, &body);
            for (name, value) in &headers {
                if let (Ok(name), Ok(value)) = (
                    HeaderName::from_bytes(name.as_bytes()),
                    HeaderValue::from_str(value),
                ) {
                    response.headers_mut().insert(name, value);
                }
            }
            response
        }
        Some(Fault::RateLimited {
            retry_after,
            silent,
        }) => {
            let failure =
                Failure::limited(Duration::try_from_secs_f64(retry_after).unwrap_or_default());
            let mut response = finish(&shared, &method, &params, Err(failure), &scopes);
            if silent {
                response.headers_mut().remove(header::RETRY_AFTER);
            }
            response
        }
        Some(Fault::LoseReply) => {
            finish(&shared, &method, &params, perform(), &scopes);
            broken()
        }
        Some(Fault::Drop) => {
            shared.calls.record(&method, methods::recorded(&params), 1);
            broken()
        }
        Some(Fault::Delay { ms }) => {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            let outcome = perform();
            finish(&shared, &method, &params, outcome, &scopes)
        }
        Some(Fault::Ignore) => {
            let outcome = methods::ignored(&shared, &params);
            finish(&shared, &method, &params, outcome, &scopes)
        }
        None => finish(&shared, &method, &params, perform(), &scopes),
    }
}

fn finish(
    shared: &Shared,
    method: &str,
    params: &Params,
    outcome: Outcome,
    scopes: &str,
) -> Response {
    let mut body = methods::recorded(params);
    let error = match &outcome {
        Ok(_) => 0,
        Err(failure) => {
            body["_error"] = json!(failure.code);
            if failure.retry_after.is_some() {
                429
            } else {
                1
            }
        }
    };
    shared.calls.record(method, body, error);
    respond(outcome, scopes)
}

#[derive(Debug, Deserialize)]
struct Ticket {
    ticket: Option<String>,
}

async fn link(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<Ticket>,
    request: Request,
) -> Response {
    if !query
        .ticket
        .is_some_and(|ticket| shared.links.redeem(&ticket))
    {
        return (StatusCode::UNAUTHORIZED, "invalid ticket").into_response();
    }
    accept_socket(request, move |socket| connection::serve(shared, socket))
}

async fn upload(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let method = "upload";
    let recorded = json!({"id": id, "size": body.len(), "base64": STANDARD.encode(&body)});
    // The address is the permission; a token that is sent here leaks.
    if headers.contains_key(header::AUTHORIZATION) {
        shared.calls.record("leak", json!({"at": "upload"}), 1);
    }
    let fault = shared.faults.take(method);
    if matches!(fault, Some(Fault::Drop)) {
        shared.calls.record(method, recorded, 1);
        return broken();
    }
    let received = files::receive(&mut shared.workspace.lock(), &id, body);
    shared
        .calls
        .record(method, recorded, i64::from(received.is_err()));
    match (received, fault) {
        (_, Some(Fault::LoseReply)) => broken(),
        (Ok(size), _) => format!("OK - {size}").into_response(),
        (Err(problem), _) => (StatusCode::BAD_REQUEST, problem).into_response(),
    }
}

async fn download(
    State(shared): State<Arc<Shared>>,
    Path((id, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let (allowed, token) = {
        let options = shared.options.lock();
        let allowed = options.scopes.iter().any(|scope| scope == "files:read");
        (allowed, options.bot_token.clone())
    };
    let sent = methods::token(&headers, &Params::default());
    let known = sent.as_ref() == Some(&token);
    shared.calls.record(
        "download",
        json!({"id": id, "name": name}),
        i64::from(!known),
    );
    if sent.is_none() {
        return Redirect::to("/login").into_response();
    }
    if !known || !allowed {
        return login_page();
    }
    let file = shared.workspace.lock().files.get(&id).cloned();
    match file.and_then(|file| Some((file.media_type, file.bytes?))) {
        Some((media_type, bytes)) => ([(header::CONTENT_TYPE, media_type)], bytes).into_response(),
        None => (StatusCode::NOT_FOUND, "no such file").into_response(),
    }
}

fn login_page() -> Response {
    let kind = (header::CONTENT_TYPE, "text/html; charset=utf-8");
    let page = "<!DOCTYPE html><html><head><title>Sign in</title></head><body></body></html>";
    ([kind], page).into_response()
}

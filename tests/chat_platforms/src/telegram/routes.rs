//! Routes of the Bot API, and the faults that tests script for them.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::response::{IntoResponse, Response};
use axum::{Json, http};
use http::StatusCode;
use serde_json::{Value, json};

use crate::common::Fault;

use super::failure::ApiFailure;
use super::methods::perform;
use super::params::Params;
use super::shared::Shared;
use super::uploads::download;

/// Maximum size of a request.
const MAX_REQUEST: usize = 64 * 1024 * 1024;

/// Builds the routes `/bot{token}/{method}` and `/file/bot{token}/{path}`.
pub(super) fn api_routes(shared: Arc<Shared>) -> Router {
    Router::new()
        .fallback(answer)
        .layer(DefaultBodyLimit::max(MAX_REQUEST))
        .with_state(shared)
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    // A connection whose request was not read to its end cannot be used again.
    let (head, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, MAX_REQUEST).await else {
        return ApiFailure::new(413, "Request Entity Too Large").into_response();
    };
    let request = Request::from_parts(head, Body::from(body));
    let path = request.uri().path().to_owned();
    let path = percent_encoding::percent_decode_str(&path).decode_utf8_lossy();
    if let Some(rest) = path.strip_prefix("/file/bot") {
        return match rest.split_once('/') {
            Some((token, file)) if token == shared.options.token => {
                answer_file(&shared, file).await
            }
            _ => ApiFailure::new(401, "Unauthorized").into_response(),
        };
    }
    let Some((token, method)) = path
        .strip_prefix("/bot")
        .and_then(|rest| rest.split_once('/'))
    else {
        return ApiFailure::new(404, "Not Found").into_response();
    };
    if token != shared.options.token {
        // The Bot API answers 404 to what cannot be a token.
        let failure = match token.split_once(':') {
            Some(_) => ApiFailure::new(401, "Unauthorized"),
            None => ApiFailure::new(404, "Not Found"),
        };
        shared
            .calls
            .record(method, Value::Null, i64::from(failure.code));
        return failure.into_response();
    }
    let params = match Params::decode(request).await {
        Ok(params) => params,
        Err(failure) => return failure.into_response(),
    };
    answer_call(&shared, method, &params).await
}

async fn answer_call(shared: &Shared, method: &str, params: &Params) -> Response {
    let record = |error: i64| shared.calls.record(method, params.record(), error);
    let fault = shared.faults.take(method);
    match &fault {
        Some(Fault::Answer {
            status,
            body,
            headers,
        }) => {
            record(i64::from(*status));
            return scripted(*status, body, headers);
        }
        Some(Fault::RateLimited {
            retry_after,
            silent,
        }) => {
            let seconds = retry_after.ceil() as u64;
            if let Ok(Some(chat)) = params.int("chat_id") {
                let now = shared.now();
                shared.change(|world| world.limits.close(chat, seconds, now));
            }
            record(429);
            let mut failure = ApiFailure::too_many(seconds);
            if *silent {
                failure.parameters = Value::Null;
            }
            return failure.into_response();
        }
        Some(Fault::Drop) => {
            record(-1);
            return broken();
        }
        Some(Fault::Ignore) => {
            record(0);
            return success(ignored(method));
        }
        Some(Fault::Delay { ms }) => tokio::time::sleep(Duration::from_millis(*ms)).await,
        Some(Fault::LoseReply) | None => {}
    }
    let result = perform(shared, method, params).await;
    record(
        result
            .as_ref()
            .map_or_else(|failure| i64::from(failure.code), |_| 0),
    );
    match (fault, result) {
        (Some(Fault::LoseReply), _) => broken(),
        (_, Ok(result)) => success(result),
        (_, Err(failure)) => failure.into_response(),
    }
}

fn success(result: Value) -> Response {
    Json(json!({"ok": true, "result": result})).into_response()
}

fn ignored(method: &str) -> Value {
    match method {
        "getUpdates" => json!([]),
        "sendMessage" | "sendPhoto" | "sendDocument" => json!({"message_id": 999_999}),
        _ => json!(true),
    }
}

fn scripted(
    status: u16,
    body: &Value,
    headers: &std::collections::HashMap<String, String>,
) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, Json(body)).into_response();
    for (name, value) in headers {
        let name = http::HeaderName::try_from(name.as_str());
        if let (Ok(name), Ok(value)) = (name, http::HeaderValue::try_from(value.as_str())) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// Returns an answer that breaks off before its body, so that the client learns nothing.
fn broken() -> Response {
    let failure = std::io::Error::other("scripted fault");
    let body = futures_util::stream::once(async { Err::<bytes::Bytes, _>(failure) });
    Response::new(Body::from_stream(body))
}

async fn answer_file(shared: &Shared, path: &str) -> Response {
    let record = |error: i64| {
        shared
            .calls
            .record("downloadFile", json!({"file_path": path}), error);
    };
    match shared.faults.take("downloadFile") {
        Some(Fault::Answer {
            status,
            body,
            headers,
        }) => {
            record(i64::from(status));
            return scripted(status, &body, &headers);
        }
        Some(Fault::Drop | Fault::LoseReply) => {
            record(-1);
            return broken();
        }
        _ => {}
    }
    match download(shared, path) {
        Some(bytes) => {
            record(0);
            Body::from(bytes).into_response()
        }
        None => {
            record(404);
            ApiFailure::new(404, "Not Found").into_response()
        }
    }
}

//! The REST API: tokens, faults, and the effects of calls.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequest, Multipart, Path, Request, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::answer::{Answer, broken};
use super::deliveries::TOPIC;
use super::shared::{CLIENT_ID, CLIENT_SECRET, DingTalkShared};
use super::{cards, messages};
use crate::common::Fault;

/// Maximum size of a request in bytes.
pub(super) const MAX_BODY: usize = 64 * 1024 * 1024;
/// Maximum size of an uploaded file in bytes.
const MAX_FILE: usize = 20 * 1024 * 1024;

/// Answers a call.
pub(super) async fn call(State(shared): State<Arc<DingTalkShared>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    let headers = request.headers().clone();
    let name = match (request.method().as_str(), path.as_str()) {
        ("POST", "/v1.0/gateway/connections/open") => "open",
        ("POST", "/v1.0/oauth2/accessToken") => "token",
        ("POST", "/v1.0/robot/oToMessages/batchSend") => "send_direct",
        ("POST", "/v1.0/robot/groupMessages/send") => "send_group",
        ("POST", "/v1.0/card/instances/createAndDeliver") => "create_card",
        ("PUT", "/v1.0/card/streaming") => "stream_card",
        ("POST", "/v1.0/robot/messageFiles/download") => "download",
        ("POST", "/media/upload") => "upload",
        _ => {
            shared.calls.record(path, Value::Null, 404);
            return Answer::refused(404, "InvalidAction.NotFound", "unknown").into_response();
        }
    };
    let decoded = match name {
        "upload" => upload_body(request).await,
        _ => json_body(request).await,
    };
    let Ok(body) = decoded else {
        shared.calls.record(name, Value::Null, 400);
        return Answer::invalid("body").into_response();
    };
    let fault = shared.faults.take(name);
    let mut is_lost = false;
    let answer = match fault {
        Some(Fault::Answer {
            status,
            body,
            headers,
        }) => Answer {
            status,
            body,
            headers,
        },
        Some(Fault::RateLimited {
            retry_after,
            silent,
        }) => Answer::too_fast((!silent).then_some(retry_after)),
        Some(Fault::Drop) => {
            shared.calls.record(name, body, -1);
            return broken();
        }
        Some(Fault::Ignore) => Answer::ok(json!({"success": true, "processQueryKey": "ignored"})),
        other => {
            if let Some(Fault::Delay { ms }) = other {
                tokio::time::sleep(Duration::from_millis(ms)).await;
            }
            is_lost = other == Some(Fault::LoseReply);
            perform(&shared, name, &headers, &query, &body)
        }
    };
    shared.calls.record(name, body, answer.error());
    if is_lost {
        return broken();
    }
    answer.into_response()
}

/// Returns a file by its code. It takes no token.
pub(super) async fn file(
    State(shared): State<Arc<DingTalkShared>>,
    Path(code): Path<String>,
    headers: HeaderMap,
) -> Response {
    let has_token = headers.contains_key("x-acs-dingtalk-access-token");
    shared.calls.record(
        "file",
        json!({"code": code}),
        if has_token { 400 } else { 0 },
    );
    let bytes = shared.files.lock().get(&code).cloned();
    bytes.map_or_else(
        || StatusCode::NOT_FOUND.into_response(),
        IntoResponse::into_response,
    )
}

async fn json_body(request: Request) -> Result<Value, ()> {
    let bytes = axum::body::to_bytes(request.into_body(), MAX_BODY)
        .await
        .map_err(drop)?;
    serde_json::from_slice(&bytes).map_err(drop)
}

async fn upload_body(request: Request) -> Result<Value, ()> {
    use base64::Engine;
    let mut form = Multipart::from_request(request, &()).await.map_err(drop)?;
    let mut body = json!({});
    while let Some(field) = form.next_field().await.map_err(drop)? {
        let name = field.name().unwrap_or_default().to_owned();
        let filename = field.file_name().map(ToOwned::to_owned);
        let bytes = field.bytes().await.map_err(drop)?;
        body[name] = match filename {
            Some(filename) => json!({
                "name": filename, "size": bytes.len(),
                "base64": base64::engine::general_purpose::STANDARD.encode(&bytes),
            }),
            None => json!(String::from_utf8_lossy(&bytes)),
        };
    }
    Ok(body)
}

fn perform(
    shared: &DingTalkShared,
    name: &str,
    headers: &HeaderMap,
    query: &str,
    body: &Value,
) -> Answer {
    match name {
        "open" => return open(shared, body),
        "token" => return token(shared, body),
        _ => {}
    }
    let in_header = headers
        .get("x-acs-dingtalk-access-token")
        .and_then(|value| value.to_str().ok());
    let in_query = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("access_token="));
    let is_upload = name == "upload";
    let token = if is_upload { in_query } else { in_header };
    if !token.is_some_and(|token| shared.tokens.lock().contains(token)) {
        return if is_upload {
            Answer::ok(json!({"errcode": 40014, "errmsg": "invalid access_token"}))
        } else {
            Answer::refused(401, "InvalidAuthentication", "invalid access token")
        };
    }
    match name {
        "send_direct" => messages::to_persons(shared, body),
        "send_group" => messages::to_group(shared, body),
        "create_card" => cards::create(shared, body),
        "stream_card" => cards::stream(shared, body),
        "download" => download(shared, body),
        _ => upload(shared, body),
    }
}

fn open(shared: &DingTalkShared, body: &Value) -> Answer {
    if body["clientId"] != CLIENT_ID || body["clientSecret"] != CLIENT_SECRET {
        return Answer::refused(401, "authFailed", "invalid client id or secret");
    }
    let wants_messages = body["subscriptions"].as_array().is_some_and(|topics| {
        topics
            .iter()
            .any(|topic| topic["type"] == "CALLBACK" && topic["topic"] == TOPIC)
    });
    if !wants_messages || !body["ua"].is_string() {
        return Answer::invalid("subscriptions");
    }
    let ticket = format!("ticket {}+c", shared.number());
    shared.tickets.lock().insert(ticket.clone());
    let endpoint = format!("ws://{}/connect", shared.address);
    Answer::ok(json!({"endpoint": endpoint, "ticket": ticket}))
}

fn token(shared: &DingTalkShared, body: &Value) -> Answer {
    if body["appKey"] != CLIENT_ID || body["appSecret"] != CLIENT_SECRET {
        return Answer::refused(
            400,
            "invalidClientIdOrSecret",
            "invalid client id or secret",
        );
    }
    let token = format!("token-{}", shared.number());
    shared.tokens.lock().insert(token.clone());
    Answer::ok(json!({"accessToken": token, "expireIn": shared.options.token_seconds}))
}

fn download(shared: &DingTalkShared, body: &Value) -> Answer {
    let code = body["downloadCode"].as_str().unwrap_or_default();
    if body["robotCode"] != CLIENT_ID || !shared.files.lock().contains_key(code) {
        return Answer::invalid("downloadCode");
    }
    let url = format!("http://{}/files/{code}", shared.address);
    Answer::ok(json!({"downloadUrl": url}))
}

fn upload(shared: &DingTalkShared, body: &Value) -> Answer {
    use base64::Engine;
    let kind = body["type"].as_str().unwrap_or_default();
    let bytes = body["media"]["base64"]
        .as_str()
        .and_then(|text| base64::engine::general_purpose::STANDARD.decode(text).ok());
    match bytes {
        Some(bytes) if ["image", "file"].contains(&kind) && bytes.len() <= MAX_FILE => {
            let id = format!("@media-{}", shared.number());
            shared.files.lock().insert(id.clone(), bytes);
            Answer::ok(json!({"errcode": 0, "errmsg": "ok", "media_id": id, "type": kind}))
        }
        _ => Answer::ok(json!({"errcode": 40004, "errmsg": "invalid media"})),
    }
}

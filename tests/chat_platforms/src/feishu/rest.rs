//! Dispatch of HTTP calls: faults, tokens, scopes, limits and the record of calls.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use serde_json::{Map, Value, json};

use super::limits::rate_limited;
use super::messages::Place;
use super::refusal::Refusal;
use super::shared::FeishuShared;
use super::world::{FeishuFile, FeishuWorld};
use super::{cards, files, messages, socket};
use crate::common::Fault;

/// Maximum size of a request body.
const MAX_BODY: usize = 40 * 1024 * 1024;

/// Scopes of the app, unless a test removes them.
const SCOPES: [&str; 7] = [
    "im:message:send_as_bot",
    "im:message.p2p_msg:readonly",
    "im:message.group_at_msg:readonly",
    "im:message.group_msg",
    "im:message.reactions:write_only",
    "im:resource",
    "cardkit:card:write",
];

/// Call with its path taken apart.
struct RestCall {
    /// Method and path without ids.
    name: String,
    /// Ids of the path in order.
    ids: Vec<String>,
    query: Map<String, Value>,
    headers: HeaderMap,
    body: Bytes,
}

/// Answer before it becomes a response.
enum RestAnswer {
    Json(u16, Value),
    File(FeishuFile),
}

/// Serves every path but those of sockets and controls.
pub(super) async fn serve(State(shared): State<Arc<FeishuShared>>, request: Request) -> Response {
    let Some(call) = read(request).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let fault = shared.faults.take(&call.name);
    match fault {
        None => {}
        Some(Fault::Answer {
            status,
            body,
            headers,
        }) => {
            return respond(&shared, &call, RestAnswer::Json(status, body), &headers);
        }
        Some(Fault::RateLimited {
            retry_after,
            silent,
        }) => {
            let mut refusal = rate_limited(Duration::from_secs_f64(retry_after), 429);
            if silent {
                refusal.reset = None;
            }
            return refused(&shared, &call, refusal);
        }
        Some(Fault::LoseReply) => {
            drop(perform(&shared, &call));
            return lost();
        }
        Some(Fault::Drop) => return lost(),
        Some(Fault::Delay { ms }) => tokio::time::sleep(Duration::from_millis(ms)).await,
        Some(Fault::Ignore) => {
            let answer = RestAnswer::Json(200, json!({"code": 0, "msg": "success", "data": {}}));
            return respond(&shared, &call, answer, &HashMap::new());
        }
    }
    perform(&shared, &call)
}

async fn read(request: Request) -> Option<RestCall> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, MAX_BODY).await.ok()?;
    let query: HashMap<String, String> = axum::extract::Query::try_from_uri(&parts.uri)
        .map(|axum::extract::Query(query)| query)
        .unwrap_or_default();
    let (name, ids) = name(&parts.method, parts.uri.path());
    Some(RestCall {
        name,
        ids,
        query: query
            .into_iter()
            .map(|(key, value)| (key, json!(value)))
            .collect(),
        headers: parts.headers,
        body,
    })
}

/// Returns the name of a call and the ids within its path.
fn name(method: &Method, path: &str) -> (String, Vec<String>) {
    let path = path.trim_start_matches('/');
    let path = path.strip_prefix("open-apis/").unwrap_or(path);
    let mut names = Vec::new();
    let mut ids = Vec::new();
    for segment in path.split('/') {
        let before: &str = names.last().copied().unwrap_or_default();
        let is_id = match before {
            "messages" | "cards" | "elements" | "resources" => ids.len() < names.len(),
            _ => false,
        } && segment != "id_convert";
        let follows_id = ids.last().is_some_and(|(at, _)| *at == names.len());
        if is_id && !follows_id {
            ids.push((names.len(), segment.to_owned()));
        } else {
            names.push(segment);
        }
    }
    let ids = ids.into_iter().map(|(_, id)| id).collect();
    (format!("{method} {}", names.join("/")), ids)
}

fn perform(shared: &FeishuShared, call: &RestCall) -> Response {
    let answer = act(shared, call, Instant::now());
    match answer {
        Ok(answer) => respond(shared, call, answer, &HashMap::new()),
        Err(refusal) => refused(shared, call, refusal),
    }
}

fn act(shared: &FeishuShared, call: &RestCall, now: Instant) -> Result<RestAnswer, Refusal> {
    let mut world = shared.world.lock();
    match call.name.as_str() {
        "POST callback/ws/endpoint" => {
            let (status, body) = socket::endpoint(shared, &call.json()?);
            return Ok(RestAnswer::Json(status, body));
        }
        "POST auth/v3/tenant_access_token/internal" => return token(&mut world, call, now),
        _ => {}
    }
    authorize(&world, call, now)?;
    world.limits.api(&call.name, now)?;
    if let Some(scope) = scope(&call.name).filter(|scope| world.missing_scopes.contains(*scope)) {
        let text = format!("Access denied. One of the following scopes is required: [{scope}].");
        return Err(Refusal::new(99_991_672, text));
    }
    let id = |at: usize| call.ids.get(at).map(String::as_str).unwrap_or_default();
    let data = match call.name.as_str() {
        "GET bot/v3/info" => {
            let bot = json!({"activate_status": 2, "app_name": "Fake bot", "open_id": world.options.bot_open_id});
            return Ok(RestAnswer::Json(
                200,
                json!({"code": 0, "msg": "ok", "bot": bot}),
            ));
        }
        "GET application/v6/scopes" => scopes(&world),
        "POST im/v1/messages/reply" => {
            messages::send(&mut world, &Place::Reply(id(0)), &call.json()?, now)?
        }
        "POST im/v1/messages" => {
            let kind = messages::text(&call.query, "receive_id_type")?;
            messages::send(&mut world, &Place::Chat(kind), &call.json()?, now)?
        }
        "PATCH im/v1/messages" => messages::patch(&mut world, id(0), &call.json()?, now)?,
        "GET im/v1/messages" => messages::list(&world, &call.query)?,
        "POST im/v1/messages/reactions" => messages::react(&mut world, id(0), &call.json()?)?,
        "GET im/v1/messages/resources" => {
            let kind = messages::text(&call.query, "type")?;
            return files::resource(&world, id(0), id(1), kind).map(RestAnswer::File);
        }
        "POST im/v1/images" => files::image(&mut world, &call.form()?)?,
        "POST im/v1/files" => files::file(&mut world, &call.form()?)?,
        "POST cardkit/v1/cards" => cards::create(&mut world, &call.json()?, now)?,
        "PUT cardkit/v1/cards/elements/content" => {
            cards::content(&mut world, id(0), id(1), &call.json()?, now)?
        }
        "DELETE cardkit/v1/cards/elements" => {
            cards::remove(&mut world, id(0), id(1), &call.json()?, now)?
        }
        "PATCH cardkit/v1/cards/settings" => {
            cards::settings(&mut world, id(0), &call.json()?, now)?
        }
        _ => {
            return Ok(RestAnswer::Json(
                404,
                json!({"code": 404, "msg": "404 page not found"}),
            ));
        }
    };
    Ok(RestAnswer::Json(
        200,
        json!({"code": 0, "msg": "success", "data": data}),
    ))
}

fn token(world: &mut FeishuWorld, call: &RestCall, now: Instant) -> Result<RestAnswer, Refusal> {
    // The vendor's client names no content type here.
    let body: Value = serde_json::from_slice(&call.body).unwrap_or_default();
    if body["app_id"] != world.options.app_id.as_str()
        || body["app_secret"] != world.options.app_secret.as_str()
    {
        let body = json!({"code": 10_014, "msg": "app secret invalid"});
        return Ok(RestAnswer::Json(400, body));
    }
    Ok(RestAnswer::Json(200, world.issue_token(now)))
}

fn authorize(world: &FeishuWorld, call: &RestCall, now: Instant) -> Result<(), Refusal> {
    let token = call
        .headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "))
        .ok_or_else(|| Refusal::new(99_991_661, "Missing access token for authorization"))?;
    match world.tokens.get(token) {
        Some(until) if now < *until => Ok(()),
        _ => Err(Refusal::new(
            99_991_663,
            "Invalid access token for authorization",
        )),
    }
}

/// Returns the scope that a call needs.
fn scope(name: &str) -> Option<&'static str> {
    if name.contains("cardkit") {
        return Some("cardkit:card:write");
    }
    match name {
        "POST im/v1/messages/reactions" => Some("im:message.reactions:write_only"),
        "POST im/v1/images" | "POST im/v1/files" | "GET im/v1/messages/resources" => {
            Some("im:resource")
        }
        "GET im/v1/messages" => Some("im:message.group_msg"),
        _ if name.contains("im/v1/messages") => Some("im:message:send_as_bot"),
        _ => None,
    }
}

/// Returns the scopes of the app with their status.
fn scopes(world: &FeishuWorld) -> Value {
    let scopes: Vec<Value> = SCOPES
        .iter()
        .map(|name| {
            let status = if world.missing_scopes.contains(*name) {
                2
            } else {
                1
            };
            json!({"scope_name": name, "grant_status": status, "scope_type": "tenant"})
        })
        .collect();
    json!({"scopes": scopes})
}

impl RestCall {
    fn content_type(&self) -> &str {
        self.headers
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    fn json(&self) -> Result<Value, Refusal> {
        if !self.content_type().starts_with("application/json") {
            return Err(Refusal::fields("the content type is not JSON"));
        }
        serde_json::from_slice(&self.body).map_err(|_| Refusal::fields("the body is not JSON"))
    }

    fn form(&self) -> Result<Vec<files::FormField>, Refusal> {
        files::form(self.content_type(), &self.body)
            .ok_or_else(|| Refusal::fields("the body is not a form"))
    }

    fn recorded(&self) -> Value {
        let body = match self.form() {
            Ok(fields) => files::recorded(&fields),
            Err(_) => serde_json::from_slice(&self.body).unwrap_or_default(),
        };
        json!({"ids": self.ids, "query": self.query, "body": body})
    }
}

fn refused(shared: &FeishuShared, call: &RestCall, refusal: Refusal) -> Response {
    let headers = refusal.reset.map(|seconds| {
        HashMap::from([
            ("x-ogw-ratelimit-limit".to_owned(), "50".to_owned()),
            ("x-ogw-ratelimit-reset".to_owned(), seconds.to_string()),
        ])
    });
    let body = json!({"code": refusal.code, "msg": refusal.text});
    let answer = RestAnswer::Json(refusal.status, body);
    respond(shared, call, answer, &headers.unwrap_or_default())
}

fn respond(
    shared: &FeishuShared,
    call: &RestCall,
    answer: RestAnswer,
    headers: &HashMap<String, String>,
) -> Response {
    let mut response = match answer {
        RestAnswer::Json(status, body) => {
            let code = body["code"].as_i64().unwrap_or(i64::from(status));
            shared
                .calls
                .record(call.name.clone(), call.recorded(), code);
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
            (status, axum::Json(body)).into_response()
        }
        RestAnswer::File(file) => {
            shared.calls.record(call.name.clone(), call.recorded(), 0);
            let disposition = format!("attachment; filename=\"{}\"", file.name);
            (
                [
                    (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
                    (header::CONTENT_DISPOSITION, disposition),
                ],
                file.bytes,
            )
                .into_response()
        }
    };
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (name.parse::<http::HeaderName>(), value.parse()) {
            response.headers_mut().insert(name, value);
        }
    }
    shared.change();
    response
}

/// Returns a response whose body breaks off, which ends the connection.
fn lost() -> Response {
    let broken = futures_util::stream::once(async {
        Err::<Bytes, _>(std::io::Error::other("the reply is lost"))
    });
    Response::builder()
        .header(header::CONTENT_LENGTH, 64)
        .body(Body::from_stream(broken))
        .unwrap_or_default()
}

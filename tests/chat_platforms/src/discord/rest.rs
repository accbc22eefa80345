//! The REST API: authorization, rate limits, faults, and the effects of calls.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};
use serde_json::{Value, json};

use super::messages;
use super::request::{Answer, broken, decode};
use super::rooms::{BOT, user};
use super::route::Route;
use super::shared::DiscordShared;
use crate::common::{Fault, Window};

/// Period of the limits of a route.
const PERIOD: Duration = Duration::from_secs(5);
/// Time within which an interaction must be answered.
const INTERACTION_TIME: Duration = Duration::from_secs(3);

/// Answers a call of the REST API.
pub(super) async fn call(
    State(shared): State<Arc<DiscordShared>>,
    Path(path): Path<String>,
    request: Request,
) -> Response {
    let Some(route) = Route::find(request.method(), &path) else {
        shared
            .calls
            .record(format!("{} {path}", request.method()), Value::Null, 404);
        return Answer::refused(404, 0, "404: Not Found").into_response();
    };
    let query = request.uri().query().unwrap_or_default().to_owned();
    let authorization = request.headers().get(header::AUTHORIZATION).cloned();
    let body = match decode(request).await {
        Ok(body) => body,
        Err(answer) => {
            shared
                .calls
                .record(route.name(), Value::Null, answer.error());
            return answer.into_response();
        }
    };
    let expected = format!("Bot {}", shared.options.token);
    let is_authorized = authorization.is_some_and(|value| value.as_bytes() == expected.as_bytes());
    let fault = shared.faults.take(route.name());
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
        }) => too_fast(retry_after, silent, false),
        Some(Fault::Drop) => {
            shared.calls.record(route.name(), body, -1);
            return broken();
        }
        Some(Fault::Ignore) => Answer::ok(json!({"id": shared.rooms.lock().id().to_string()})),
        _ if route.needs_token() && !is_authorized => Answer::refused(401, 0, "401: Unauthorized"),
        other => {
            if let Some(Fault::Delay { ms }) = other {
                tokio::time::sleep(Duration::from_millis(ms)).await;
            }
            is_lost = other == Some(Fault::LoseReply);
            limited(&shared, &route, || perform(&shared, &route, &query, &body))
        }
    };
    let mut recorded = body;
    if let (Some(channel), Some(fields)) = (route.channel(), recorded.as_object_mut()) {
        fields.insert("_channel".to_owned(), json!(channel.to_string()));
    }
    if let (Route::EditMessage(_, id), Some(fields)) = (&route, recorded.as_object_mut()) {
        fields.insert("_message".to_owned(), json!(id.to_string()));
    }
    if recorded.is_null() {
        recorded = json!({"_path": path, "_query": query});
    }
    shared.calls.record(route.name(), recorded, answer.error());
    if is_lost {
        return broken();
    }
    answer.into_response()
}

/// Returns a file. The platform's file host takes no token.
pub(super) async fn attachment(
    State(shared): State<Arc<DiscordShared>>,
    Path((id, _name)): Path<(u64, String)>,
    headers: HeaderMap,
) -> Response {
    if headers.contains_key(header::AUTHORIZATION) {
        shared.violation("the token was sent to the file host");
    }
    let error = match shared.faults.take("attachment") {
        Some(Fault::Answer { status, .. }) => status,
        Some(Fault::Drop | Fault::LoseReply) => return broken(),
        _ => 0,
    };
    shared
        .calls
        .record("attachment", json!({"id": id.to_string()}), error.into());
    if let (Ok(status), true) = (StatusCode::from_u16(error), error > 0) {
        return status.into_response();
    }
    let bytes = shared.rooms.lock().files.get(&id).cloned();
    bytes.map_or_else(
        || StatusCode::NOT_FOUND.into_response(),
        IntoResponse::into_response,
    )
}

fn too_fast(retry_after: f64, silent: bool, global: bool) -> Answer {
    let mut body = json!({"message": "You are being rate limited.", "global": global});
    let scope = if global { "global" } else { "user" };
    let mut answer = Answer::new(429, Value::Null);
    answer
        .headers
        .insert("x-ratelimit-scope".to_owned(), scope.to_owned());
    if !silent {
        body["retry_after"] = json!(retry_after);
        answer
            .headers
            .insert("retry-after".to_owned(), retry_after.ceil().to_string());
    }
    answer.body = body;
    answer
}

/// Applies the limit of the route and announces it.
fn limited(shared: &DiscordShared, route: &Route, perform: impl FnOnce() -> Answer) -> Answer {
    if !shared.options.rate_limits {
        return perform();
    }
    let bucket = format!("{}:{}", route.name(), route.channel().unwrap_or_default());
    let now = Instant::now();
    let mut windows = shared.windows.lock();
    let global = windows
        .entry("global".to_owned())
        .or_insert_with(|| Window::new(50, Duration::from_secs(1)));
    if let Err(delay) = global.call(now) {
        return too_fast(delay.as_secs_f64(), false, true);
    }
    let window = windows
        .entry(bucket.clone())
        .or_insert_with(|| Window::new(route.limit(), PERIOD));
    if let Err(delay) = window.call(now) {
        return too_fast(delay.as_secs_f64(), false, false);
    }
    let (remaining, reset) = window.state(now);
    drop(windows);
    let mut answer = perform();
    for (name, value) in [
        ("x-ratelimit-bucket", route.name().to_owned()),
        ("x-ratelimit-limit", route.limit().to_string()),
        ("x-ratelimit-remaining", remaining.to_string()),
        (
            "x-ratelimit-reset-after",
            format!("{:.3}", reset.as_secs_f64()),
        ),
    ] {
        answer.headers.insert(name.to_owned(), value);
    }
    answer
}

fn perform(shared: &DiscordShared, route: &Route, query: &str, body: &Value) -> Answer {
    if matches!(
        route,
        Route::CreateMessage(_) | Route::EditMessage(..) | Route::Followup(_)
    ) && body["allowed_mentions"]["parse"] != json!([])
    {
        shared.violation(format!("{} without allowed_mentions", route.name()));
    }
    let limits = |remaining: u32| {
        json!({
            "total": 1000, "remaining": remaining, "reset_after": 14_400_000, "max_concurrency": 1,
        })
    };
    match route {
        Route::Gateway => Answer::ok(json!({"url": shared.gateway()})),
        Route::GatewayBot => Answer::ok(json!({
            "url": shared.gateway(), "shards": 1,
            "session_start_limit": limits(shared.identifies.load(Ordering::SeqCst)),
        })),
        Route::Me => Answer::ok(user(BOT, "bot", true)),
        Route::Application => {
            let flags = if shared.options.message_content {
                1 << 19
            } else {
                0
            };
            Answer::ok(json!({
                "id": BOT.to_string(), "name": "bot", "icon": null, "description": "",
                "bot_public": true, "bot_require_code_grant": false, "verify_key": "k",
                "flags": flags, "team": null,
                "owner": {"id": "9", "username": "o", "discriminator": "0", "avatar": null},
            }))
        }
        Route::Commands => Answer::ok(body.clone()),
        Route::Channel(channel) => match shared.rooms.lock().channels.get(channel) {
            Some(channel) => Answer::ok(channel.shown()),
            None => Answer::refused(404, 10003, "Unknown Channel"),
        },
        Route::CreateMessage(channel) => {
            let base = shared.base();
            messages::create(&mut shared.rooms.lock(), *channel, body, &base)
        }
        Route::ListMessages(channel) => {
            let value = |name: &str| {
                query
                    .split('&')
                    .filter_map(|pair| pair.split_once('='))
                    .find(|(key, _)| *key == name)
                    .and_then(|(_, value)| value.parse::<u64>().ok())
            };
            let limit = value("limit").unwrap_or(50) as usize;
            messages::list(&shared.rooms.lock(), *channel, value("after"), limit)
        }
        Route::EditMessage(channel, id) => {
            messages::edit(&mut shared.rooms.lock(), *channel, *id, body)
        }
        Route::DeleteMessage(channel, id) => {
            messages::delete(&mut shared.rooms.lock(), *channel, *id)
        }
        Route::Typing(channel) => match shared.rooms.lock().channels.contains_key(channel) {
            true => Answer::new(204, Value::Null),
            false => Answer::refused(404, 10003, "Unknown Channel"),
        },
        Route::CreateThread(channel, id) => {
            messages::thread(&mut shared.rooms.lock(), *channel, *id, body)
        }
        Route::React(channel, id, emoji) => {
            messages::react(&mut shared.rooms.lock(), *channel, *id, emoji)
        }
        Route::Callback(id, token) => callback(shared, *id, token, query, body),
        Route::Followup(token) => {
            let mut interactions = shared.interactions.lock();
            let is_known = interactions
                .values_mut()
                .any(|interaction| interaction.token == *token && interaction.answered);
            match is_known {
                true => Answer::ok(json!({"id": "1", "content": body["content"]})),
                false => Answer::refused(404, 10015, "Unknown Webhook"),
            }
        }
        Route::RefreshUrls => Answer::ok(json!({
            "refreshed_urls": body["attachment_urls"].as_array().into_iter().flatten()
                .map(|url| json!({"original": url, "refreshed": url})).collect::<Vec<_>>(),
        })),
    }
}

fn callback(shared: &DiscordShared, id: u64, token: &str, query: &str, body: &Value) -> Answer {
    let mut interactions = shared.interactions.lock();
    let known = interactions
        .get_mut(&id)
        .filter(|known| known.token == token && known.begun.elapsed() < INTERACTION_TIME);
    let Some(interaction) = known else {
        return Answer::refused(404, 10062, "Unknown interaction");
    };
    if interaction.answered {
        return Answer::refused(400, 40060, "Interaction has already been acknowledged.");
    }
    if !matches!(body["type"].as_u64(), Some(4..=7)) {
        return Answer::invalid("type", "not a callback type of components");
    }
    interaction.answered = true;
    if query.contains("with_response=") {
        return Answer::ok(json!({"interaction": {
            "id": id.to_string(), "type": 3, "response_message_loading": false,
            "response_message_ephemeral": false,
        }}));
    }
    Answer::new(204, Value::Null)
}

//! Methods of the Web API: tokens, scopes, limits and dispatch.

use http::{HeaderMap, header};
use serde_json::{Value, json};

use super::answer::{Failure, Outcome};
use super::params::Params;
use super::shared::Shared;
use super::workspace::{APP, BOT_ID, BOT_USER, TEAM};
use super::{chat, conversations, files, streams};

/// Checks a call and performs it.
pub(super) fn call(shared: &Shared, method: &str, params: &Params, token: Option<&str>) -> Outcome {
    let options = shared.options.lock().clone();
    if options
        .unknown_methods
        .iter()
        .any(|unknown| unknown == method)
    {
        return Err(unknown(method));
    }
    let kind = if method == "apps.connections.open" {
        (options.app_token.as_str(), "xapp-")
    } else {
        (options.bot_token.as_str(), "xoxb-")
    };
    check_token(token, kind)?;
    let mut workspace = shared.workspace.lock();
    let channel = params.text("channel");
    if let Some(needed) = scope(method, || {
        let found = channel.as_ref().and_then(|id| workspace.channels.get(id));
        found.map_or("channels:history", |channel| channel.kind.history_scope())
    }) && !options.scopes.iter().any(|scope| scope == needed)
    {
        return Err(Failure {
            more: json!({"needed": needed, "provided": options.scopes.join(",")}),
            ..Failure::new("missing_scope")
        });
    }
    let now = shared.now();
    if options.rate_limits {
        shared.limits.lock().call(method, channel.as_deref(), now)?;
    }
    let workspace = &mut *workspace;
    let lifetime = options.stream_lifetime;
    if let Some(message) = channel
        .as_ref()
        .and_then(|id| workspace.channels.get_mut(id))
        .and_then(|channel| channel.message(&params.text("ts")?))
    {
        streams::expire(message, now, lifetime);
    }
    match method {
        "apps.connections.open" => open(shared, options.max_connections),
        "auth.test" => Ok(json!({
            "url": "https://example.slack.com/",
            "team": "Example",
            "user": "deerflow",
            "team_id": TEAM,
            "user_id": BOT_USER,
            "bot_id": BOT_ID,
        })),
        "chat.postMessage" => chat::post(workspace, params, options.duplicates),
        "chat.postEphemeral" => chat::post_ephemeral(workspace, params),
        "chat.update" => chat::update(workspace, params),
        "chat.delete" => chat::delete(workspace, params),
        "chat.startStream" => streams::start(workspace, params, now),
        "chat.appendStream" => streams::append(workspace, params, now, lifetime),
        "chat.stopStream" => streams::stop(workspace, params, now, lifetime),
        "reactions.add" => chat::react(workspace, params, true),
        "reactions.remove" => chat::react(workspace, params, false),
        "conversations.info" => conversations::info(workspace, params),
        "conversations.history" => conversations::history(workspace, params),
        "conversations.replies" => conversations::replies(workspace, params),
        "files.getUploadURLExternal" => files::upload_url(workspace, params, &shared.base),
        "files.completeUploadExternal" => files::complete(workspace, params, &shared.base),
        "files.info" => files::info(workspace, params, &shared.base),
        "assistant.threads.setStatus" => Ok(json!({})),
        _ => Err(unknown(method)),
    }
}

/// Returns the success of a call without an effect.
pub(super) fn ignored(shared: &Shared, params: &Params) -> Outcome {
    let ts = shared.workspace.lock().next_ts();
    Ok(json!({"channel": params.text("channel"), "ts": ts}))
}

/// Returns the token of a call.
pub(super) fn token(headers: &HeaderMap, params: &Params) -> Option<String> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok();
    let bearer = value.and_then(|value| value.strip_prefix("Bearer "));
    bearer.map(str::to_owned).or_else(|| params.text("token"))
}

fn check_token(token: Option<&str>, (right, prefix): (&str, &str)) -> Result<(), Failure> {
    match token {
        None => Err(Failure::new("not_authed")),
        Some(token) if token == right => Ok(()),
        Some(token)
            if ["xoxb-", "xapp-", "xoxp-"]
                .iter()
                .any(|kind| token.starts_with(kind))
                && !token.starts_with(prefix) =>
        {
            Err(Failure::new("not_allowed_token_type"))
        }
        Some(_) => Err(Failure::new("invalid_auth")),
    }
}

fn unknown(method: &str) -> Failure {
    Failure {
        more: json!({"req_method": method}),
        ..Failure::new("unknown_method")
    }
}

fn open(shared: &Shared, max: usize) -> Outcome {
    let ticket = shared
        .links
        .ticket(max)
        .ok_or_else(|| Failure::limited(std::time::Duration::from_secs(30)))?;
    let socket_base = shared.base.replacen("http", "ws", 1);
    Ok(json!({"url": format!("{socket_base}/link/?ticket={ticket}&app_id={APP}")}))
}

fn scope(method: &str, history: impl FnOnce() -> &'static str) -> Option<&'static str> {
    Some(match method {
        "chat.postMessage" | "chat.postEphemeral" | "chat.update" | "chat.delete"
        | "chat.startStream" | "chat.appendStream" | "chat.stopStream" => "chat:write",
        "reactions.add" | "reactions.remove" => "reactions:write",
        "conversations.history" | "conversations.replies" => history(),
        "files.getUploadURLExternal" | "files.completeUploadExternal" => "files:write",
        "files.info" => "files:read",
        _ => return None,
    })
}

/// Returns the parameters as they are recorded: without a token.
pub(super) fn recorded(params: &Params) -> Value {
    let mut fields = params.0.clone();
    fields.remove("token");
    Value::Object(fields)
}

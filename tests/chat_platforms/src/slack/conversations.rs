//! Methods that read conversations.

use serde_json::{Value, json};

use super::answer::{Failure, Outcome};
use super::params::Params;
use super::workspace::{ChannelKind, SlackMessage, Workspace};

/// Describes a channel.
pub(super) fn info(workspace: &mut Workspace, params: &Params) -> Outcome {
    let id = params.required("channel")?;
    let channel = workspace.channel(&id)?;
    Ok(json!({"channel": {
        "id": id,
        "is_im": channel.kind == ChannelKind::Im,
        "is_channel": channel.kind == ChannelKind::Channel,
        "is_private": channel.kind != ChannelKind::Channel,
        "is_member": channel.member,
        "is_archived": channel.archived,
    }}))
}

/// Lists messages outside of threads, newest first.
pub(super) fn history(workspace: &mut Workspace, params: &Params) -> Outcome {
    let channel = workspace.channel(&params.required("channel")?)?;
    if !channel.member {
        return Err(Failure::new("not_in_channel"));
    }
    let outside = |message: &&SlackMessage| {
        let thread = message.thread_ts.as_ref();
        !message.deleted && thread.is_none_or(|thread| *thread == message.ts)
    };
    let found: Vec<&SlackMessage> = channel.messages.iter().rev().filter(outside).collect();
    Ok(page(found, params))
}

/// Lists a thread, oldest first.
pub(super) fn replies(workspace: &mut Workspace, params: &Params) -> Outcome {
    let ts = params.required("ts")?;
    let channel = workspace.channel(&params.required("channel")?)?;
    if channel.message(&ts).is_none() {
        return Err(Failure::new("thread_not_found"));
    }
    let inside = |message: &&SlackMessage| {
        !message.deleted && (message.ts == ts || message.thread_ts.as_ref() == Some(&ts))
    };
    let found = channel.messages.iter().filter(inside).collect();
    Ok(page(found, params))
}

fn page(messages: Vec<&SlackMessage>, params: &Params) -> Value {
    let limit = params.text("limit").and_then(|limit| limit.parse().ok());
    let limit = limit.unwrap_or(100_usize).clamp(1, 999);
    let skip = params.text("cursor").and_then(|cursor| cursor.parse().ok());
    let skip = skip.unwrap_or(0_usize);
    let oldest = params.text("oldest").unwrap_or_default();
    let inclusive = params.flag("inclusive");
    let wanted: Vec<&SlackMessage> = messages
        .into_iter()
        .filter(|message| message.ts > oldest || inclusive && message.ts == oldest)
        .collect();
    let more = wanted.len() > skip + limit;
    let with_metadata = params.flag("include_all_metadata");
    let views: Vec<Value> = wanted
        .iter()
        .skip(skip)
        .take(limit)
        .map(|message| message.view(with_metadata))
        .collect();
    let next = if more {
        (skip + limit).to_string()
    } else {
        String::new()
    };
    json!({"messages": views, "has_more": more, "response_metadata": {"next_cursor": next}})
}

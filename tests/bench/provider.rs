//! Provider with minimal cost: it sends the same token as often and as far apart as the prompt
//! requests.

use std::{io, time::Duration};

use axum::{
    Router,
    body::{Body, Bytes},
    http::header,
    response::{IntoResponse, Response},
    routing::post,
};
use futures_util::{Stream, StreamExt, stream};
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval};

/// The text of every token; no id or field name contains it.
pub(super) const TOKEN: &str = "dew";

/// Tool that is called in runs with tool calls: it lists an empty folder.
const TOOL: &str = "list_uploaded_files";
/// Beginning of the directive for tool calls.
const ROUNDS: &str = "[[rounds ";

const HEAD: &[u8] = b"data: {\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"bench\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n";
const BODY: &[u8] = b"data: {\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"bench\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"dew \"},\"finish_reason\":null}]}\n\n";
const TAIL: &[u8] = b"data: {\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"bench\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"bench\",\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":200,\"total_tokens\":210}}\n\ndata: [DONE]\n\n";
const WHOLE: &str = r#"{"id":"chatcmpl-bench","object":"chat.completion","created":1700000000,"model":"bench","choices":[{"index":0,"message":{"role":"assistant","content":"dew"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":1,"total_tokens":11}}"#;

pub(super) fn router() -> Router {
    Router::new().route("/v1/chat/completions", post(chat))
}

/// Returns a prompt for this many tokens, this far apart.
pub(super) fn prompt(tokens: usize, gap: Duration) -> String {
    format!("hi [[slow {tokens}x{}ms]]", gap.as_millis())
}

/// Returns the part of a prompt that requests this many tool calls, one after the other, before the
/// tokens.
pub(super) fn rounds(calls: usize) -> String {
    format!(" {ROUNDS}{calls}]]")
}

async fn chat(request: Bytes) -> Response {
    let request = String::from_utf8_lossy(&request);
    let asked_for_stream =
        request.contains("\"stream\":true") || request.contains("\"stream\": true");
    if !asked_for_stream {
        return ([(header::CONTENT_TYPE, "application/json")], WHOLE).into_response();
    }
    if let Some(call) = next_call(&request) {
        let events = [Bytes::from_static(HEAD), tool_call(call).into()];
        let body = Body::from_stream(stream::iter(events.map(Ok::<_, io::Error>)));
        return ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response();
    }
    let (tokens, gap) = pace(&request).unwrap_or((1, Duration::ZERO));
    let body = stream::iter([HEAD])
        .chain(reply(tokens, gap))
        .chain(stream::iter([TAIL]));
    let body = Body::from_stream(body.map(|chunk| Ok::<_, io::Error>(Bytes::from_static(chunk))));
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

fn reply(tokens: usize, gap: Duration) -> impl Stream<Item = &'static [u8]> + Send {
    let mut clock = (!gap.is_zero()).then(|| interval(gap));
    if let Some(clock) = &mut clock {
        // A late token does not delay the ones after it: the whole reply takes tokens x gap.
        clock.set_missed_tick_behavior(MissedTickBehavior::Burst);
    }
    stream::iter(0..tokens)
        .zip(stream::unfold(clock, |mut clock| async {
            if let Some(clock) = &mut clock {
                clock.tick().await;
            }
            Some((BODY, clock))
        }))
        .map(|(_, chunk)| chunk)
}

/// Returns the newest `[[slow TOKENSxMSms]]` in the request.
fn pace(request: &str) -> Option<(usize, Duration)> {
    const OPEN: &str = "[[slow ";
    let directive = &request[request.rfind(OPEN)? + OPEN.len()..];
    let (tokens, gap) = directive.split_once("ms]]")?.0.split_once('x')?;
    Some((
        tokens.parse().ok()?,
        Duration::from_millis(gap.parse().ok()?),
    ))
}

/// Returns the number of the tool call that follows the results in the request, from 1, if the
/// newest prompt requests one more.
fn next_call(request: &str) -> Option<usize> {
    let directive = &request[request.rfind(ROUNDS)? + ROUNDS.len()..];
    let calls: usize = directive.split_once("]]")?.0.parse().ok()?;
    let results = directive.matches(r#""role":"tool""#).count();
    (results < calls).then_some(results + 1)
}

/// Returns the events of a call of [`TOOL`]; the arguments of each call differ.
fn tool_call(number: usize) -> String {
    let arguments = json!({ "max_results": number }).to_string();
    let function = json!({ "name": TOOL, "arguments": arguments });
    let call = json!({ "index": 0, "id": format!("call-{number}"), "type": "function", "function": function });
    let chunk = |delta: Value, finish: Option<&str>| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        let chunk = json!({ "id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "bench", "choices": [choice] });
        format!("data: {chunk}\n\n")
    };
    let usage = r#"data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,"model":"bench","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":10,"total_tokens":20}}"#;
    let call = chunk(json!({ "tool_calls": [call] }), None);
    let end = chunk(json!({}), Some("tool_calls"));
    format!("{call}{end}{usage}\n\ndata: [DONE]\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_pace_of_a_request_counts() {
        let request = format!(
            "{} {}",
            prompt(1, Duration::ZERO),
            prompt(200, Duration::from_millis(10))
        );
        assert_eq!(pace(&request), Some((200, Duration::from_millis(10))));
        assert_eq!(pace("hi [[slow"), None);
    }

    #[test]
    fn tool_calls_end_after_the_requested_number() {
        let result = r#"{"role":"tool","content":"none"}"#;
        let request = format!("{result}{}{result}", rounds(2));
        assert_eq!(next_call(&request), Some(2), "older results do not count");
        assert_eq!(next_call(&format!("{request}{result}")), None);
        assert_eq!(next_call("hi"), None);
    }
}

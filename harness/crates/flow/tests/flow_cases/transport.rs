//! Runner of cases of type `transport`, over a local HTTP server.

use std::time::Duration;

use deerflow_flow::adapter::{
    AdapterFactory, AgentTurnResult, SessionId, TurnDelta, TurnMode, TurnRuntime, TurnStatus,
};
use deerflow_flow::adapters::pi_mono::PiMonoOptions;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::http_server::{HttpServer, Recorded, Reply, event_stream};
use super::pi_mono_kit::{
    Deltas, adapter_context, agent, factory, invocation, object, result_json, session_context,
};
use super::results::compare;

/// Limit of a turn whose server does not answer.
const SHORT_LIMIT: Duration = Duration::from_millis(50);

/// Observed behaviour of a case.
struct Outcome {
    result: AgentTurnResult,
    deltas: Vec<TurnDelta>,
    requests: Vec<Recorded>,
    /// Debug form of the adapter.
    debug: String,
}

/// Runs a case and returns the differences.
pub(crate) fn run(case: &Value) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        match perform(case).await {
            Ok(outcome) => check(case, &outcome),
            Err(error) => vec![error],
        }
    })
}

async fn perform(case: &Value) -> Result<Outcome, String> {
    let script = case.clone();
    let server = HttpServer::start(move |request, _| reply(&script, request)).await;
    let turn = &case["given"]["turn"];
    let is_http = case["transport"] == "pi-mono-http";
    let default = if is_http {
        "http://pm.local"
    } else {
        "http://ds.local/v1"
    };
    let base = turn["baseUrl"].as_str().unwrap_or(default);
    let (scheme, rest) = base.split_once("://").ok_or("no URL")?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let base = format!("{scheme}://{host}:{}/{path}", server.port);
    let mut config = object(json!({
        "baseUrl": base,
        "apiKey": turn["apiKey"].as_str().unwrap_or("k-canary"),
        "transport": if is_http { "http" } else { "deepseek" },
        "model": turn.get("model").unwrap_or(&json!("m")),
        "clientSecret": "hidden",
    }));
    config.extend(object(case["given"]["adapterConfig"].clone()));
    let agent = agent(Value::Object(config));
    let factory = factory(PiMonoOptions {
        allowed_origins: vec![base],
        ..PiMonoOptions::default()
    });
    let failed = |error| format!("{error:?}");
    let adapter = factory
        .create(adapter_context(&agent))
        .await
        .map_err(failed)?;
    // A turn without a model reports that itself; other failures of a session end the case.
    let session = match adapter.create_session(session_context(&agent)).await {
        Ok(session) => session,
        Err(error) if error.code == "adapter_config_invalid" => SessionId("S1".to_owned()),
        Err(error) => {
            return Ok(Outcome {
                result: AgentTurnResult::ended(TurnStatus::Failed, error),
                deltas: Vec::new(),
                requests: server.requests(),
                debug: format!("{adapter:?}"),
            });
        }
    };
    let mode = match case["turnMode"].as_str() {
        Some("plan") => TurnMode::Plan,
        Some("evaluate") => TurnMode::Evaluate,
        _ => TurnMode::Normal,
    };
    let mut invocation = invocation(&agent, session.clone(), mode);
    invocation.temperature = turn["temperature"].as_f64();
    invocation.max_tokens = turn["maxTokens"].as_u64();
    turn["system"]
        .as_str()
        .unwrap_or("")
        .clone_into(&mut invocation.system_prompt);
    turn["prompt"]
        .as_str()
        .unwrap_or("U")
        .clone_into(&mut invocation.user_prompt);
    if let Ok(messages) = serde_json::from_value::<Vec<_>>(turn["messages"].clone()) {
        invocation.messages = messages.into();
    }
    if turn["input"].is_object() {
        invocation.input = object(turn["input"].clone());
    }
    let limit = case["response"]["timeout"] == true;
    let runtime = TurnRuntime {
        deadline: limit.then(|| Instant::now() + SHORT_LIMIT),
        ..TurnRuntime::default()
    };
    let (deltas, id) = (Deltas::default(), invocation.invocation_id.clone());
    let cancel = CancellationToken::new();
    let result = adapter.run_turn(invocation, runtime, &deltas, cancel).await;
    let expected = case["requests"].as_array().into_iter().flatten();
    let mut urls = expected.filter_map(|request| request["url"].as_str());
    if urls.any(|url| url.ends_with("/abort")) {
        adapter.abort(&id).await.map_err(failed)?;
    }
    adapter.dispose(&session).await.map_err(failed)?;
    Ok(Outcome {
        result,
        deltas: deltas.all(),
        requests: server.requests(),
        debug: format!("{adapter:?}"),
    })
}

/// Answers a request as the case says.
fn reply(case: &Value, request: &Recorded) -> Reply {
    let expected = case["requests"].as_array().into_iter().flatten();
    let mut statuses = expected.filter(|one| {
        one["method"] == request.method.as_str() && one["url"] == request.url.as_str()
    });
    let status = statuses.find_map(|one| one["responseStatus"].as_u64());
    if let Some(status) = status.and_then(|status| u16::try_from(status).ok()) {
        return Reply::text(status, "");
    }
    if request.path.ends_with("/sessions") {
        let default = json!({"sessionId": "S1"});
        let answer = case.get("sessionResponse").unwrap_or(&default);
        let status = answer["status"].as_u64().unwrap_or(200);
        return Reply::json(u16::try_from(status).unwrap_or(200), answer);
    }
    if request.path.ends_with("/turns") || request.path.ends_with("/chat/completions") {
        return turn_reply(&case["response"]);
    }
    Reply::text(200, "")
}

fn turn_reply(response: &Value) -> Reply {
    if response["networkError"] == true {
        return Reply::Disconnect;
    }
    if response["timeout"] == true {
        return Reply::Hang;
    }
    let status = response["status"].as_u64().unwrap_or(200);
    let status = u16::try_from(status).unwrap_or(200);
    let mut headers: Vec<String> = object(response["headers"].clone())
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.as_str().unwrap_or(&value.to_string())))
        .collect();
    if let Some(pieces) = response["sse"].as_array() {
        headers.push(event_stream());
        let pieces = pieces.iter().filter_map(Value::as_str);
        let pieces = pieces.map(|piece| piece.as_bytes().to_vec());
        return Reply::Whole(status, headers, pieces.collect());
    }
    let body = match (response.get("json"), response["text"].as_str()) {
        (Some(json), _) => {
            headers.push("content-type: application/json".to_owned());
            json.to_string()
        }
        (None, text) => text.unwrap_or_default().to_owned(),
    };
    Reply::Whole(status, headers, vec![body.into_bytes()])
}

fn check(case: &Value, outcome: &Outcome) -> Vec<String> {
    let mut out = Vec::new();
    let result = result_json(&outcome.result);
    compare("result", &case["expect"]["result"], Some(&result), &mut out);
    for lists in [&case["expect"]["absent"], &case["absent"]] {
        for key in lists.as_array().into_iter().flatten() {
            let key = key.as_str().unwrap_or_default();
            if result.get(key).is_some() {
                out.push(format!("result.{key} shall be absent"));
            }
        }
    }
    if outcome.result.status != TurnStatus::Completed && outcome.result.error.is_none() {
        out.push("a failed turn has no error".to_owned());
    }
    if let Some(expected) = case["deltas"].as_array() {
        let found = Value::Array(delta_rows(&outcome.deltas));
        compare("deltas", &json!(expected), Some(&found), &mut out);
    }
    check_requests(case, &outcome.requests, &mut out);
    let texts = outcome.requests.iter().map(|request| &request.body);
    let outputs = [format!("{:?}", outcome.result), outcome.debug.clone()];
    let canary = case["given"]["turn"]["apiKey"]
        .as_str()
        .unwrap_or("k-canary");
    // A key of one letter occurs by chance.
    if canary.len() > 3 && texts.chain(&outputs).any(|text| text.contains(canary)) {
        out.push("the API key occurs outside of its header".to_owned());
    }
    out
}

/// Returns the fragments in the form of the cases.
fn delta_rows(deltas: &[TurnDelta]) -> Vec<Value> {
    let (mut rows, mut text, mut reasoning) = (Vec::new(), String::new(), String::new());
    for delta in deltas {
        if !delta.reasoning.is_empty() {
            reasoning.push_str(&delta.reasoning);
            rows.push(json!({
                "part": "reasoning",
                "deltaReasoningText": delta.reasoning,
                "accumulatedReasoningText": reasoning,
            }));
        }
        if !delta.text.is_empty() {
            text.push_str(&delta.text);
            rows.push(json!({
                "part": "final", "deltaText": delta.text, "accumulatedText": text,
            }));
        }
    }
    rows
}

/// Checks that the expected requests occur in their order.
fn check_requests(case: &Value, found: &[Recorded], out: &mut Vec<String>) {
    let mut rest = found.iter();
    for expected in case["requests"].as_array().into_iter().flatten() {
        let (method, url) = (&expected["method"], &expected["url"]);
        let is_expected =
            |one: &&Recorded| *method == one.method.as_str() && *url == one.url.as_str();
        let Some(request) = rest.find(is_expected) else {
            let found: Vec<_> = found.iter().map(|one| (&one.method, &one.url)).collect();
            out.push(format!("request {method} {url} is missing in {found:?}"));
            continue;
        };
        let place = format!("request {url}");
        let headers = Value::Object(request.headers.clone());
        compare_part(&place, &expected["headers"], &headers, out);
        let body = serde_json::from_str(&request.body).unwrap_or_default();
        compare_part(&place, &expected["body"], &body, out);
        let never = [&expected["bodyNever"], &case["bodyNever"]];
        for text in never.into_iter().filter_map(Value::as_array).flatten() {
            let text = text.as_str().unwrap_or_default();
            if request.body.contains(text) {
                out.push(format!("{place}: the body contains {text:?}"));
            }
        }
    }
}

fn compare_part(place: &str, expected: &Value, found: &Value, out: &mut Vec<String>) {
    if !expected.is_null() {
        compare(place, expected, Some(found), out);
    }
}

//! Delivery of events as envelopes, with redeliveries until they are acknowledged.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::shared::Shared;
use super::workspace::{APP, BOT_USER, TEAM};

/// Returns the payload of an event.
pub(super) fn callback(event: Value) -> Value {
    let at = event["ts"]
        .as_str()
        .and_then(|ts| ts.split('.').next()?.parse::<u64>().ok());
    json!({
        "token": "v",
        "team_id": TEAM,
        "api_app_id": APP,
        "event": event,
        "type": "event_callback",
        "event_id": format!("Ev{}", hex::encode(rand::random::<[u8; 5]>())),
        "event_time": at,
        "authorizations": [{
            "enterprise_id": null,
            "team_id": TEAM,
            "user_id": BOT_USER,
            "is_bot": true,
            "is_enterprise_install": false,
        }],
        "is_ext_shared_channel": false,
        "event_context": "4-x",
    })
}

/// Delivers a payload in a task of its own.
pub(super) fn deliver(shared: &Arc<Shared>, kind: &'static str, payload: Value) {
    let shared = shared.clone();
    #[expect(
        clippy::disallowed_methods,
        reason = "a fake is a program of its own, without the task registry of the server"
    )]
    tokio::spawn(async move {
        let (acknowledged_within, delays) = {
            let options = shared.options.lock();
            (options.ack_timeout, options.redelivery.clone())
        };
        let attempts = [Duration::ZERO].into_iter().chain(delays);
        for (attempt, delay) in attempts.enumerate() {
            if !delay.is_zero() {
                sleep(delay).await;
            }
            if try_once(&shared, kind, &payload, attempt, acknowledged_within).await {
                return;
            }
        }
        shared.calls.record("undelivered", payload, 1);
    });
}

async fn try_once(
    shared: &Shared,
    kind: &str,
    payload: &Value,
    attempt: usize,
    acknowledged_within: Duration,
) -> bool {
    let id = format!("e-{}", hex::encode(rand::random::<[u8; 8]>()));
    let mut envelope = json!({
        "envelope_id": id,
        "payload": payload,
        "type": kind,
        "accepts_response_payload": kind != "events_api",
    });
    if kind == "events_api" {
        envelope["retry_attempt"] = json!(attempt);
        envelope["retry_reason"] = json!(if attempt == 0 { "" } else { "timeout" });
    }
    let body = json!({"envelope_id": id, "attempt": attempt, "payload": payload});
    let Some(acked) = shared.links.send(&id, envelope.to_string()) else {
        shared.calls.record("unconnected", body, 1);
        return false;
    };
    shared.calls.record("envelope", body, 0);
    let done = matches!(timeout(acknowledged_within, acked).await, Ok(Ok(())));
    shared.links.forget(&id);
    done
}

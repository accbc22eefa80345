//! Outcomes that responses guaranteed to clients, and their checks.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::follower::ObservedStream;
use crate::rig::{Gateways, ScriptedReply, body};

/// Maximum time until a webhook call: a call whose sender died is repeated when its lease has
/// expired.
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(90);

/// Outcome that a response guaranteed to a client.
#[derive(Debug)]
pub(super) enum Guarantee {
    /// The run ends; with this answer, if it has one.
    Run {
        thread: String,
        run: String,
        reply: Option<ScriptedReply>,
    },
    /// The thread is deleted.
    Gone { thread: String },
    /// The file exists with this content.
    File {
        thread: String,
        name: &'static str,
        content: String,
    },
    /// A request that is repeated with its key creates no second run.
    Keyed {
        thread: String,
        reply: ScriptedReply,
    },
    /// The webhook of the run is called.
    Called { run: String },
    /// The viewer receives the whole stream.
    ObservedStream {
        reply: ScriptedReply,
        observed: Box<ObservedStream>,
    },
}

/// Requests the run with a key that belongs to its thread.
pub(super) async fn ask_with_key(
    gateways: &Gateways,
    thread: &str,
    reply: &ScriptedReply,
) -> Option<String> {
    let request = gateways
        .client
        .post(format!("{}/threads/{thread}/runs", gateways.urls[0]))
        .header("Idempotency-Key", thread);
    let answer = request.json(&body(&reply.prompt)).send().await.ok()?;
    let status = answer.status();
    let actual: Value = answer.json().await.ok()?;
    assert!(
        status.is_success() || status == StatusCode::SERVICE_UNAVAILABLE,
        "{status} {actual}"
    );
    actual["run_id"].as_str().map(str::to_owned)
}

impl Guarantee {
    pub(super) fn thread(&self) -> Option<&str> {
        match self {
            Self::Run { thread, .. } | Self::File { thread, .. } | Self::Keyed { thread, .. } => {
                Some(thread)
            }
            Self::Gone { .. } | Self::Called { .. } | Self::ObservedStream { .. } => None,
        }
    }

    pub(super) async fn assert_holds(&self, gateways: &Gateways, called: &Mutex<Vec<String>>) {
        match self {
            Self::Run {
                thread,
                run,
                reply: None,
            } => drop(gateways.ended(0, thread, run).await),
            Self::Run {
                thread,
                run,
                reply: Some(reply),
            } => {
                let stored = gateways
                    .ended(0, thread, run)
                    .await
                    .unwrap_or_else(|| panic!("run {run} of {reply:?} is gone"));
                assert_eq!(stored["status"], "success", "{reply:?}: {stored}");
                assert_appears_once(reply, &gateways.visible_messages(0, thread).await);
            }
            Self::Gone { thread } => {
                let (status, actual) = gateways
                    .try_ask(0, Method::GET, &format!("/threads/{thread}"), &Value::Null)
                    .await
                    .expect("answer");
                assert_eq!(status, 404, "{actual}");
            }
            Self::File {
                thread,
                name,
                content,
            } => {
                let url = format!(
                    "{}/api/threads/{thread}/artifacts/mnt/user-data/uploads/{name}",
                    gateways.urls[0]
                );
                let answer = gateways.client.get(url).send().await.expect("answer");
                assert_eq!(answer.status(), 200, "{name} of {thread}");
                assert_eq!(answer.text().await.expect("text"), *content);
            }
            Self::Keyed { thread, reply } => {
                let first = ask_with_key(gateways, thread, reply).await.expect("a run");
                let second = ask_with_key(gateways, thread, reply).await.expect("a run");
                assert_eq!(first, second, "one run per key");
                assert_eq!(
                    gateways.ended(0, thread, &first).await.expect("a run")["status"],
                    "success"
                );
                assert_appears_once(reply, &gateways.visible_messages(0, thread).await);
            }
            Self::Called { run } => {
                let started = Instant::now();
                while !called.lock().contains(run) {
                    assert!(
                        started.elapsed() < WEBHOOK_TIMEOUT,
                        "the webhook of {run} is not called"
                    );
                    // The other side is a process and cannot notify this one.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
            // A client that is notified of a gap reads the thread, for example if the last events
            // were lost with the process.
            Self::ObservedStream { reply, observed } if observed.has_a_gap() => {
                assert_eq!(
                    gateways
                        .ended(0, &observed.thread, &observed.run)
                        .await
                        .expect("a run")["status"],
                    "success",
                    "{observed:?}"
                );
                assert_appears_once(reply, &gateways.visible_messages(0, &observed.thread).await);
            }
            // Without an external stream store, sequence numbers restart with the process.
            Self::ObservedStream { reply, observed } => observed.is_complete(reply),
        }
    }
}

/// Asserts that the question and its answer are each present once.
#[track_caller]
fn assert_appears_once(reply: &ScriptedReply, transcript: &[(String, String)]) {
    for wanted in [("human", &reply.prompt), ("ai", &reply.text)] {
        let times = transcript
            .iter()
            .filter(|(role, words)| role == wanted.0 && words == wanted.1)
            .count();
        assert_eq!(times, 1, "{wanted:?} in {transcript:?}");
    }
}

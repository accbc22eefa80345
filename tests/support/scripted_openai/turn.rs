//! Decides one answer of the scripted model: status, and what goes over the wire in which order.

use std::{io, time::Duration};

use axum::body::Bytes;
use futures_util::{Stream, StreamExt, stream};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{
    Released,
    request::{ChatRequest, Cue},
    script::{Call, Script, Usage, words},
};

/// A fixed birthday: answers do not depend on the time.
const CREATED: u64 = 1_700_000_000;

/// One HTTP answer, decided.
pub(super) struct Turn {
    /// HTTP status.
    pub(super) status: u16,
    /// Server-sent events rather than one JSON document.
    pub(super) events: bool,
    /// After how many seconds the caller is told to try again.
    pub(super) retry_after: Option<u32>,
    /// Wait before the headers.
    pub(super) delay: Duration,
    /// The body.
    pub(super) beats: Vec<Beat>,
}

/// One thing that happens to a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Beat {
    /// These bytes are sent.
    Send(Bytes),
    /// Nothing happens for a while.
    Wait(Duration),
    /// Nothing happens until the test lets answers with this word say more than so many pieces.
    Hold { word: String, said: usize },
    /// The connection drops.
    Cut,
    /// Nothing happens any more.
    Hang,
}

impl Turn {
    /// A failure as OpenAI words it.
    pub(super) fn failure(status: u16, message: &str) -> Self {
        let kind = match status {
            400 => "invalid_request_error",
            401 => "authentication_error",
            429 => "rate_limit_error",
            _ => "server_error",
        };
        let body =
            json!({"error": {"message": message, "type": kind, "param": null, "code": null}});
        Self {
            status,
            events: false,
            retry_after: matches!(status, 429 | 503).then_some(0),
            delay: Duration::ZERO,
            beats: vec![Beat::Send(body.to_string().into())],
        }
    }

    /// The answer to `request`; `failing` says whether a scripted error still has tries left.
    pub(super) fn compose(
        request: &ChatRequest,
        cue: &Cue,
        script: &Script,
        failing: impl FnOnce() -> bool,
    ) -> Self {
        let offered = request.offered_tools();
        let mut steps = script.steps.iter().filter_map(|calls| {
            let calls: Vec<&Call> = calls
                .iter()
                .filter(|call| {
                    offered.contains(call.tool.as_str()) || (call.ghost && !offered.is_empty())
                })
                .collect();
            (!calls.is_empty()).then_some(calls)
        });
        let calls = steps.nth(cue.step);
        if let (None, Some(failure)) = (&calls, script.failure)
            && failing()
        {
            let failed = Self::failure(
                failure.status,
                &format!("scripted error {}", failure.status),
            );
            return Self {
                delay: script.delay,
                retry_after: failure.after.or(failed.retry_after),
                ..failed
            };
        }
        let answer = Answer::new(request, script, calls);
        let beats = if request.stream {
            answer.streamed(request.wants_usage())
        } else {
            answer.whole()
        };
        Self {
            status: 200,
            events: request.stream,
            retry_after: None,
            delay: script.delay,
            beats,
        }
    }
}

struct Answer<'a> {
    script: &'a Script,
    model: &'a str,
    seed: String,
    /// The calls of a tool turn; `None` on the final turn.
    calls: Option<Vec<&'a Call>>,
    pieces: Vec<String>,
    usage: Value,
}

impl<'a> Answer<'a> {
    fn new(request: &'a ChatRequest, script: &'a Script, calls: Option<Vec<&'a Call>>) -> Self {
        let pieces = if calls.is_some() {
            Vec::new()
        } else {
            script.pieces()
        };
        let counted = Usage {
            prompt: 10 + request.messages.len() as u64,
            completion: (pieces.len() as u64).max(1),
            cached: None,
        };
        Self {
            script,
            model: request.model.as_deref().unwrap_or("scripted"),
            seed: format!("{:016x}", request.fingerprint()),
            calls,
            pieces,
            usage: reported(script.usage.unwrap_or(counted)),
        }
    }

    fn finish_reason(&self) -> &str {
        match (&self.calls, &self.script.stop) {
            (Some(_), _) => "tool_calls",
            (None, Some(reason)) => reason,
            (None, None) => "stop",
        }
    }

    /// Whether the text is long enough to be cut where the script says.
    fn is_cut(&self) -> bool {
        self.script
            .cut
            .is_some_and(|after| after <= self.pieces.len())
    }

    fn call_id(&self, index: usize) -> String {
        format!("call_{}_{index}", &self.seed[..8])
    }

    fn envelope(&self, object: &str, choices: &Value) -> Value {
        json!({
            "id": format!("chatcmpl-{}", self.seed),
            "object": object,
            "created": CREATED,
            "model": self.model,
            "choices": choices,
        })
    }

    fn whole(&self) -> Vec<Beat> {
        let mut message = json!({"role": "assistant", "content": null});
        if let Some(calls) = &self.calls {
            let calls = calls.iter().enumerate().map(|(index, call)| {
                json!({
                    "id": self.call_id(index),
                    "type": "function",
                    "function": {"name": call.tool, "arguments": call.arguments},
                })
            });
            message["tool_calls"] = calls.collect();
        } else {
            message["content"] = self.pieces.concat().into();
            if let Some(thoughts) = &self.script.think {
                message["reasoning_content"] = thoughts.as_str().into();
            }
        }
        let choice = json!([{"index": 0, "message": message, "finish_reason": self.finish_reason(), "logprobs": null}]);
        let mut body = self.envelope("chat.completion", &choice);
        body["usage"] = self.usage.clone();
        let body = Bytes::from(body.to_string());
        let half = body.slice(..body.len() / 2);
        if self.calls.is_some() {
            return vec![Beat::Send(body)];
        }
        if self.script.hang {
            return vec![Beat::Hang];
        }
        if self.is_cut() {
            return vec![Beat::Send(half), Beat::Cut];
        }
        let pieces = u32::try_from(self.pieces.len()).unwrap_or(u32::MAX);
        let wait = self
            .script
            .slow
            .map(|pace| Beat::Wait(pace.gap.saturating_mul(pieces)));
        let hold = self.hold_before(self.pieces.len().saturating_sub(1));
        hold.into_iter()
            .chain(wait)
            .chain([Beat::Send(if self.script.garbage { half } else { body })])
            .collect()
    }

    fn streamed(&self, with_usage: bool) -> Vec<Beat> {
        if self.calls.is_none() && self.script.hang {
            return vec![Beat::Hang];
        }
        let mut beats = vec![self.delta(&json!({"role": "assistant", "content": ""}))];
        match &self.calls {
            Some(calls) => calls
                .iter()
                .enumerate()
                .for_each(|(index, call)| self.stream_call(&mut beats, index, call)),
            None => {
                self.stream_text(&mut beats);
                if beats.last() == Some(&Beat::Cut) {
                    return beats;
                }
            }
        }
        beats.push(self.choice(&json!({}), Some(self.finish_reason())));
        if with_usage {
            let mut chunk = self.envelope("chat.completion.chunk", &json!([]));
            chunk["usage"] = self.usage.clone();
            beats.push(event(&chunk.to_string()));
        }
        beats.push(event("[DONE]"));
        beats
    }

    fn stream_call(&self, beats: &mut Vec<Beat>, index: usize, call: &Call) {
        beats.push(self.delta(&json!({"tool_calls": [{
            "index": index,
            "id": self.call_id(index),
            "type": "function",
            "function": {"name": call.tool, "arguments": ""},
        }]})));
        let letters: Vec<char> = call.arguments.chars().collect();
        let size = if self.script.frag {
            1
        } else {
            letters.len().div_ceil(2).max(1)
        };
        for part in letters.chunks(size) {
            let part: String = part.iter().collect();
            beats.push(self.delta(
                &json!({"tool_calls": [{"index": index, "function": {"arguments": part}}]}),
            ));
        }
    }

    fn stream_text(&self, beats: &mut Vec<Beat>) {
        for thought in self.script.think.as_deref().map(words).unwrap_or_default() {
            beats.push(self.delta(&json!({"reasoning_content": thought})));
        }
        let middle = self.pieces.len() / 2;
        for (at, piece) in self.pieces.iter().enumerate() {
            if self.script.cut == Some(at) {
                break;
            }
            beats.extend(self.hold_before(at));
            if self.script.garbage && at == middle {
                beats.push(event(
                    r#"{"id": "chatcmpl-broken", "choices": [{"delta": {"content": "#,
                ));
            }
            beats.push(self.delta(&json!({"content": piece})));
            if let Some(pace) = self.script.slow {
                beats.push(Beat::Wait(pace.gap));
            }
        }
        if self.is_cut() {
            beats.push(Beat::Cut);
        }
    }

    /// What keeps back the piece that comes after so many.
    fn hold_before(&self, said: usize) -> Option<Beat> {
        let hold = self
            .script
            .hold
            .as_ref()
            .filter(|hold| hold.after <= said)?;
        Some(Beat::Hold {
            word: hold.word.clone(),
            said,
        })
    }

    fn delta(&self, delta: &Value) -> Beat {
        self.choice(delta, None)
    }

    fn choice(&self, delta: &Value, finish_reason: Option<&str>) -> Beat {
        let choices =
            json!([{"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": null}]);
        event(&self.envelope("chat.completion.chunk", &choices).to_string())
    }
}

fn reported(usage: Usage) -> Value {
    let mut said = json!({
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt.saturating_add(usage.completion),
    });
    if let Some(cached) = usage.cached {
        said["prompt_tokens_details"] = json!({"cached_tokens": cached});
    }
    said
}

fn event(data: &str) -> Beat {
    Beat::Send(format!("data: {data}\n\n").into())
}

/// Plays beats as a response body.
pub(super) fn play(
    beats: Vec<Beat>,
    released: watch::Receiver<Released>,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    stream::iter(beats).filter_map(move |beat| {
        let mut released = released.clone();
        async move {
            match beat {
                Beat::Send(bytes) => Some(Ok(bytes)),
                Beat::Wait(pause) => {
                    tokio::time::sleep(pause).await;
                    None
                }
                Beat::Hold { word, said } => {
                    // The sender goes only with the server, and the answer with it.
                    let _released = released
                        .wait_for(|released| released.allows_more(&word, said))
                        .await;
                    None
                }
                Beat::Cut => {
                    // The connection writes out what it holds only when the body has nothing ready.
                    tokio::task::yield_now().await;
                    Some(Err(io::Error::new(
                        io::ErrorKind::ConnectionAborted,
                        "scripted cut",
                    )))
                }
                Beat::Hang => std::future::pending().await,
            }
        }
    })
}

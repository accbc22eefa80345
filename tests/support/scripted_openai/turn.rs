//! Builds one response of the scripted model: its status, and the order of what is sent.

use std::time::Duration;

use axum::body::Bytes;
use serde_json::{Value, json};

use super::{
    body::BodyStep,
    request::{ChatRequest, ScriptMessage},
    script::{Call, Script, Usage, words},
};

/// Fixed creation time: responses do not depend on the clock.
const CREATED: u64 = 1_700_000_000;

/// One planned HTTP response.
pub(super) struct Turn {
    /// HTTP status.
    pub(super) status: u16,
    /// `true` for server-sent events, `false` for one JSON document.
    pub(super) events: bool,
    /// Seconds of the `Retry-After` header.
    pub(super) retry_after: Option<u32>,
    /// Wait before the headers.
    pub(super) delay: Duration,
    /// The body.
    pub(super) body_steps: Vec<BodyStep>,
}

impl Turn {
    /// Builds an error response in OpenAI's format.
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
            body_steps: vec![BodyStep::Send(body.to_string().into())],
        }
    }

    /// Builds the response to `request`; `failing` is `true` if a scripted error has tries left.
    pub(super) fn compose(
        request: &ChatRequest,
        script_message: &ScriptMessage,
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
        let calls = steps.nth(script_message.step);
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
        let body_steps = if request.stream {
            answer.streamed(request.wants_usage())
        } else {
            answer.whole()
        };
        Self {
            status: 200,
            events: request.stream,
            retry_after: None,
            delay: script.delay,
            body_steps,
        }
    }
}

struct Answer<'a> {
    script: &'a Script,
    model: &'a str,
    seed: String,
    /// Calls of a tool turn; `None` on the final turn.
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

    /// Reports whether the text is long enough to reach the script's cut.
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

    fn whole(&self) -> Vec<BodyStep> {
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
            return vec![BodyStep::Send(body)];
        }
        if self.script.hang {
            return vec![BodyStep::Hang];
        }
        if self.is_cut() {
            return vec![BodyStep::Send(half), BodyStep::Cut];
        }
        let pieces = u32::try_from(self.pieces.len()).unwrap_or(u32::MAX);
        let wait = self
            .script
            .slow
            .map(|pace| BodyStep::Wait(pace.gap.saturating_mul(pieces)));
        let hold = self.hold_before(self.pieces.len().saturating_sub(1));
        hold.into_iter()
            .chain(wait)
            .chain([BodyStep::Send(if self.script.garbage {
                half
            } else {
                body
            })])
            .collect()
    }

    fn streamed(&self, with_usage: bool) -> Vec<BodyStep> {
        if self.calls.is_none() && self.script.hang {
            return vec![BodyStep::Hang];
        }
        let mut body_steps = vec![self.delta(&json!({"role": "assistant", "content": ""}))];
        match &self.calls {
            Some(calls) => calls
                .iter()
                .enumerate()
                .for_each(|(index, call)| self.stream_call(&mut body_steps, index, call)),
            None => {
                self.stream_text(&mut body_steps);
                if body_steps.last() == Some(&BodyStep::Cut) {
                    return body_steps;
                }
            }
        }
        body_steps.push(self.choice(&json!({}), Some(self.finish_reason())));
        if with_usage {
            let mut chunk = self.envelope("chat.completion.chunk", &json!([]));
            chunk["usage"] = self.usage.clone();
            body_steps.push(event(&chunk.to_string()));
        }
        body_steps.push(event("[DONE]"));
        body_steps
    }

    fn stream_call(&self, body_steps: &mut Vec<BodyStep>, index: usize, call: &Call) {
        body_steps.push(self.delta(&json!({"tool_calls": [{
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
            body_steps.push(self.delta(
                &json!({"tool_calls": [{"index": index, "function": {"arguments": part}}]}),
            ));
        }
    }

    fn stream_text(&self, body_steps: &mut Vec<BodyStep>) {
        for thought in self.script.think.as_deref().map(words).unwrap_or_default() {
            body_steps.push(self.delta(&json!({"reasoning_content": thought})));
        }
        let middle = self.pieces.len() / 2;
        for (at, piece) in self.pieces.iter().enumerate() {
            if self.script.cut == Some(at) {
                break;
            }
            body_steps.extend(self.hold_before(at));
            if self.script.garbage && at == middle {
                body_steps.push(event(
                    r#"{"id": "chatcmpl-broken", "choices": [{"delta": {"content": "#,
                ));
            }
            body_steps.push(self.delta(&json!({"content": piece})));
            if let Some(pace) = self.script.slow {
                body_steps.push(BodyStep::Wait(pace.gap));
            }
        }
        if self.is_cut() {
            body_steps.push(BodyStep::Cut);
        }
    }

    /// Returns the step that holds back the piece after `sent` pieces.
    fn hold_before(&self, sent: usize) -> Option<BodyStep> {
        let hold = self
            .script
            .hold
            .as_ref()
            .filter(|hold| hold.after <= sent)?;
        Some(BodyStep::Hold {
            word: hold.word.clone(),
            sent,
        })
    }

    fn delta(&self, delta: &Value) -> BodyStep {
        self.choice(delta, None)
    }

    fn choice(&self, delta: &Value, finish_reason: Option<&str>) -> BodyStep {
        let choices =
            json!([{"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": null}]);
        event(&self.envelope("chat.completion.chunk", &choices).to_string())
    }
}

fn reported(usage: Usage) -> Value {
    let mut reported = json!({
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt.saturating_add(usage.completion),
    });
    if let Some(cached) = usage.cached {
        reported["prompt_tokens_details"] = json!({"cached_tokens": cached});
    }
    reported
}

fn event(data: &str) -> BodyStep {
    BodyStep::Send(format!("data: {data}\n\n").into())
}

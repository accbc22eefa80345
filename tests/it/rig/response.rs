//! Responses and finished runs, with assertions on their content.

use deerflow_tests::sse::SseFrame;
use reqwest::{StatusCode, header::HeaderMap};
use serde_json::Value;

/// HTTP response with its whole body.
#[derive(Debug, Clone)]
pub(crate) struct HttpResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

/// Run whose stream was read to its end.
#[derive(Debug, Clone)]
pub(crate) struct FinishedRun {
    pub(crate) thread: String,
    pub(crate) run: String,
    pub(crate) headers: HeaderMap,
    pub(crate) frames: Vec<SseFrame>,
}

impl HttpResponse {
    /// Sends the request and reads the whole response.
    pub(crate) async fn of(request: reqwest::RequestBuilder) -> Self {
        let answer = request.send().await.expect("answer");
        let (status, headers) = (answer.status(), answer.headers().clone());
        Self {
            status,
            headers,
            text: answer.text().await.expect("body"),
        }
    }

    /// Asserts status 200 and returns the body.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text);
        self.json()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// Asserts this error status and returns the response's `detail`.
    #[track_caller]
    pub(crate) fn refusal(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        assert_eq!(
            self.headers["content-type"], "application/json",
            "{}",
            self.text
        );
        let body = self.json();
        let detail = body
            .get("detail")
            .unwrap_or_else(|| panic!("no detail: {body}"));
        let actual_text = match detail {
            Value::String(text) => !text.is_empty(),
            Value::Array(items) => {
                !items.is_empty()
                    && items.iter().all(|item| {
                        item["type"].is_string()
                            && item["loc"].is_array()
                            && item["msg"].is_string()
                    })
            }
            Value::Object(failure) => ["code", "message"]
                .iter()
                .all(|key| failure.get(*key).is_some_and(Value::is_string)),
            _ => false,
        };
        assert!(actual_text, "empty detail: {detail}");
        detail.clone()
    }
}

impl FinishedRun {
    /// Returns the event names in order.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.frames.iter().map(SseFrame::name).collect()
    }

    /// Returns the data of every event of this name.
    pub(crate) fn data(&self, event: &str) -> Vec<Value> {
        self.frames
            .iter()
            .filter(|frame| frame.name() == event)
            .map(|frame| frame.json().expect("json"))
            .collect()
    }

    /// Returns the last state that was streamed.
    #[track_caller]
    pub(crate) fn last_values(&self) -> Value {
        self.data("values").pop().expect("values")
    }

    /// Returns the chunks of AI messages in order.
    pub(crate) fn chunks(&self) -> Vec<Value> {
        let messages = self
            .data("messages")
            .into_iter()
            .map(|pair| pair[0].clone());
        messages
            .filter(|message| message["type"] == "AIMessageChunk")
            .collect()
    }
}

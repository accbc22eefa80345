//! Choice of the way in which a text is sent.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Milliseconds after its last update in which a stream may have expired. The platform's limit is
/// about six minutes.
const IDLE_MS: i64 = 330_000;
/// Milliseconds after its beginning in which a stream is finished. The platform's limit is ten
/// minutes.
const LIFETIME_MS: i64 = 540_000;

/// Request of a person, as long as its connection lives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Question {
    /// Id of the request.
    pub(super) req_id: String,
    /// Connection.
    pub(super) connection: String,
}

impl Question {
    /// Reads the context of an event.
    pub(super) fn read(context: &Value) -> Option<Self> {
        Self::deserialize(context).ok()
    }
}

/// State of a live message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LiveStream {
    /// Request that it answers.
    #[serde(flatten)]
    pub(super) question: Question,
    /// Id of the stream.
    pub(super) stream: String,
    /// Time of the first update in milliseconds.
    pub(super) begun: i64,
    /// Time of the last update in milliseconds.
    pub(super) updated: i64,
    /// `true` if it takes no more updates.
    #[serde(default)]
    pub(super) closed: bool,
}

impl LiveStream {
    /// Reads the state of a live message.
    pub(super) fn read(state: &Value) -> Option<Self> {
        Self::deserialize(state).ok()
    }

    fn is_open(&self, connection: &str, now: i64) -> bool {
        !self.closed
            && self.question.connection == connection
            && now.saturating_sub(self.updated) < IDLE_MS
    }

    fn is_old(&self, now: i64) -> bool {
        now.saturating_sub(self.begun) >= LIFETIME_MS
    }
}

/// Next step of a live message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LiveStep {
    /// A stream is begun.
    Begin(Question),
    /// The stream shows the text.
    Update(LiveStream),
    /// The stream is finished; the answer follows in a new message.
    Close(LiveStream),
    /// Nothing can be shown before the final text.
    Nothing,
}

/// Chooses the next step of a live message. An empty state is null.
pub(super) fn live_step(state: &Value, context: &Value, connection: &str, now: i64) -> LiveStep {
    if state.is_null() {
        return match Question::read(context) {
            Some(question) if question.connection == connection => LiveStep::Begin(question),
            _ => LiveStep::Nothing,
        };
    }
    match LiveStream::read(state) {
        Some(live) if !live.is_open(connection, now) => LiveStep::Nothing,
        Some(live) if live.is_old(now) => LiveStep::Close(live),
        Some(live) => LiveStep::Update(live),
        None => LiveStep::Nothing,
    }
}

/// Way of a final text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route {
    /// As the last update of a stream.
    Finish {
        /// Request.
        req_id: String,
        /// Stream.
        stream: String,
    },
    /// As a new message, after a live stream has been finished with a note.
    CloseAndPush {
        /// Request.
        req_id: String,
        /// Stream.
        stream: String,
    },
    /// As a new message.
    Push,
}

/// Chooses the way of a final text. `stream` is the id of a new stream, if one is begun.
pub(super) fn final_route(
    state: &Value,
    context: &Value,
    connection: &str,
    now: i64,
    stream: String,
) -> Route {
    match live_step(state, context, connection, now) {
        LiveStep::Begin(question) => Route::Finish {
            req_id: question.req_id,
            stream,
        },
        LiveStep::Update(live) => Route::Finish {
            req_id: live.question.req_id,
            stream: live.stream,
        },
        LiveStep::Close(live) => Route::CloseAndPush {
            req_id: live.question.req_id,
            stream: live.stream,
        },
        LiveStep::Nothing => Route::Push,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MINUTE: i64 = 60_000;

    fn state(begun: i64, updated: i64, closed: bool) -> Value {
        json!({
            "req_id": "r",
            "connection": "c",
            "stream": "s",
            "begun": begun,
            "updated": updated,
            "closed": closed,
        })
    }

    #[test]
    fn final_text_finishes_an_open_stream_or_is_pushed() {
        let context = json!({"req_id": "r", "connection": "c"});
        let finish = |stream: &str| Route::Finish {
            req_id: "r".to_owned(),
            stream: stream.to_owned(),
        };
        let close = Route::CloseAndPush {
            req_id: "r".to_owned(),
            stream: "s".to_owned(),
        };
        let cases = [
            (Value::Null, context.clone(), "c", 0, finish("new")),
            (Value::Null, context.clone(), "other", 0, Route::Push),
            (Value::Null, Value::Null, "c", 0, Route::Push),
            (Value::Null, json!({"req_id": 1}), "c", 0, Route::Push),
            (
                state(0, 0, false),
                context.clone(),
                "c",
                5 * MINUTE,
                finish("s"),
            ),
            (
                state(0, 0, false),
                context.clone(),
                "c",
                6 * MINUTE,
                Route::Push,
            ),
            (state(0, 0, true), context.clone(), "c", 0, Route::Push),
            (state(0, 0, false), context.clone(), "other", 0, Route::Push),
            (
                state(0, 9 * MINUTE, false),
                context.clone(),
                "c",
                9 * MINUTE,
                close,
            ),
            (json!("nonsense"), context.clone(), "c", 0, Route::Push),
        ];
        for (state, context, connection, now, expected) in cases {
            let route = final_route(&state, &context, connection, now, "new".to_owned());
            assert_eq!(route, expected, "{state} {context} {now}");
        }
    }
}

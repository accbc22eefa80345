//! The relay baseline: an axum handler that calls the provider and forwards each token as an event.

use std::{fmt::Write as _, io, sync::Arc};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use deerflow_tests::sse::SseDecoder;
use futures_util::stream;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

struct Provider {
    client: reqwest::Client,
    url: String,
}

/// Returns the routes. `POST /relay` accepts the same body as a run of the gateway.
pub(super) fn router(provider: &str) -> anyhow::Result<Router> {
    let client = reqwest::Client::builder()
        .no_proxy()
        .tcp_nodelay(true)
        .build()?;
    let provider = Provider {
        client,
        url: format!("http://{provider}/v1/chat/completions"),
    };
    Ok(Router::new()
        .route("/relay", post(relay))
        .with_state(Arc::new(provider)))
}

async fn relay(State(provider): State<Arc<Provider>>, Json(run): Json<Value>) -> Response {
    let message = json!({"role": "user", "content": run["input"]["messages"][0]["content"]});
    let request = json!({"model": "bench", "stream": true, "messages": [message]});
    match provider
        .client
        .post(&provider.url)
        .json(&request)
        .send()
        .await
    {
        Ok(answer) => {
            let relayed = Relayed {
                answer,
                decoder: SseDecoder::default(),
                ended: false,
            };
            let body = Body::from_stream(stream::try_unfold(relayed, Relayed::next));
            ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
        }
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

struct Relayed {
    answer: reqwest::Response,
    decoder: SseDecoder,
    ended: bool,
}

#[derive(Deserialize)]
struct Chunk {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Delta,
}

#[derive(Deserialize, Serialize)]
struct Delta {
    content: Option<String>,
}

impl Relayed {
    /// Waits for bytes and forwards every token in them with one write.
    async fn next(mut self) -> io::Result<Option<(Bytes, Self)>> {
        while !self.ended {
            match self.answer.chunk().await.map_err(io::Error::other)? {
                Some(bytes) => self.decoder.push(&bytes),
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
            let events = self.events()?;
            if !events.is_empty() {
                return Ok(Some((events.into(), self)));
            }
        }
        // A connection is reused only if its response was read to the end.
        while self
            .answer
            .chunk()
            .await
            .map_err(io::Error::other)?
            .is_some()
        {}
        Ok(None)
    }

    fn events(&mut self) -> io::Result<String> {
        let mut events = String::new();
        while let Some(frame) = self.decoder.next_frame().map_err(io::Error::other)? {
            let data = frame.data.as_deref().unwrap_or_default();
            if data == "[DONE]" {
                events.push_str("event: end\ndata: null\n\n");
                self.ended = true;
                break;
            }
            let chunk: Chunk = serde_json::from_str(data)?;
            let deltas = chunk.choices.into_iter().map(|choice| choice.delta);
            for delta in
                deltas.filter(|delta| delta.content.as_ref().is_some_and(|text| !text.is_empty()))
            {
                let data = serde_json::to_string(&delta)?;
                write!(events, "event: messages\ndata: {data}\n\n").map_err(io::Error::other)?;
            }
        }
        Ok(events)
    }
}

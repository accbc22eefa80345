//! JSON response that is serialized into chunks. One growing buffer would need up to three times the
//! size of the answer while it grows.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, SizeHint};
use serde::Serialize;

use crate::error::ApiError;

/// Size of the first chunk, in bytes. Each further chunk is as large as all before it, up to
/// [`MAX_CHUNK`].
const FIRST_CHUNK: usize = 4 << 10;
const MAX_CHUNK: usize = 1 << 20;

/// JSON response that may be large.
#[derive(Debug)]
pub struct LargeJson<T>(pub T);

impl<T: Serialize> IntoResponse for LargeJson<T> {
    fn into_response(self) -> Response {
        let mut chunks = Chunks::default();
        if let Err(error) = serde_json::to_writer(&mut chunks, &self.0) {
            return ApiError::Internal(format!("response cannot be serialized: {error}"))
                .into_response();
        }
        // The source may be as large as its JSON.
        drop(self);
        let json = HeaderValue::from_static("application/json");
        ([(header::CONTENT_TYPE, json)], chunks.into_body()).into_response()
    }
}

/// Text in chunks.
#[derive(Debug, Default)]
struct Chunks {
    full: VecDeque<Bytes>,
    last: Vec<u8>,
    /// Size of the full chunks, in bytes.
    full_bytes: usize,
}

impl Chunks {
    fn into_body(mut self) -> Body {
        if self.full.is_empty() {
            return self.last.into();
        }
        self.end_chunk();
        body_of_chunks(self.full)
    }

    fn end_chunk(&mut self) {
        let chunk = std::mem::take(&mut self.last);
        self.full_bytes += chunk.len();
        if !chunk.is_empty() {
            self.full.push_back(chunk.into());
        }
    }
}

impl Write for Chunks {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        if self.last.len() == self.last.capacity() {
            self.end_chunk();
            let size = self.full_bytes.clamp(FIRST_CHUNK, MAX_CHUNK);
            self.last.reserve_exact(size);
        }
        let free = self.last.capacity() - self.last.len();
        let written = text.len().min(free);
        self.last.extend_from_slice(&text[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Creates a body of known size that frees each chunk once it is sent.
pub fn body_of_chunks(chunks: VecDeque<Bytes>) -> Body {
    let left = chunks.iter().map(|chunk| chunk.len() as u64).sum();
    Body::new(ChunkedBody { chunks, left })
}

struct ChunkedBody {
    chunks: VecDeque<Bytes>,
    /// Size of the chunks, in bytes.
    left: u64,
}

impl HttpBody for ChunkedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let chunk = self.chunks.pop_front();
        self.left -= chunk.as_ref().map_or(0, Bytes::len) as u64;
        Poll::Ready(chunk.map(|chunk| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.chunks.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use serde_json::{Value, json};

    use super::*;

    async fn body(value: &Value) -> (u64, usize, Vec<u8>) {
        let mut chunks = Chunks::default();
        serde_json::to_writer(&mut chunks, value).expect("JSON");
        let count = chunks.full.len() + 1;
        let body = chunks.into_body();
        let size = body.size_hint().exact().expect("a known size");
        let bytes = to_bytes(body, usize::MAX).await.expect("a body");
        (size, count, bytes.to_vec())
    }

    #[tokio::test]
    async fn chunks_are_the_json_with_its_size() {
        let texts: Vec<String> = (0..60).map(|n| n.to_string().repeat(50_000)).collect();
        for value in [json!(1), json!("x".repeat(4_094)), json!(texts)] {
            let whole = serde_json::to_vec(&value).expect("JSON");
            let (size, count, text) = body(&value).await;
            assert_eq!((size, text == whole), (whole.len() as u64, true));
            assert!(count <= 11 + whole.len() / MAX_CHUNK, "{count}");
        }
    }

    #[tokio::test]
    async fn response_has_the_type_and_the_length() {
        let response = LargeJson(json!({ "a": "x".repeat(10_000) })).into_response();
        assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
        assert_eq!(response.body().size_hint().exact(), Some(10_008));
    }
}

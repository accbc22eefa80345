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

use super::chunks::next_chunk;
use crate::error::ApiError;

/// Size of the first chunk, in bytes. Each further chunk is as large as all before it, up to
/// [`MAX_CHUNK`].
const FIRST_CHUNK: usize = 4 << 10;
const MAX_CHUNK: usize = 1 << 20;
/// Minimum size of a text that is sent without a copy, in bytes.
const MIN_SHARED: usize = 64 << 10;

/// JSON response that may be large.
#[derive(Debug)]
pub struct LargeJson<T>(pub T);

impl<T: Serialize> IntoResponse for LargeJson<T> {
    fn into_response(self) -> Response {
        response(self.0, Vec::new())
    }
}

/// JSON response that contains raw JSON texts of these bytes, which are sent without a copy.
#[derive(Debug)]
pub struct SharingJson<T>(pub T, pub Vec<Bytes>);

impl<T: Serialize> IntoResponse for SharingJson<T> {
    fn into_response(self) -> Response {
        response(self.0, self.1)
    }
}

fn response(value: impl Serialize, mut shared: Vec<Bytes>) -> Response {
    shared.retain(|text| text.len() >= MIN_SHARED);
    let mut chunks = Chunks {
        shared,
        ..Chunks::default()
    };
    if let Err(error) = serde_json::to_writer(&mut chunks, &value) {
        return ApiError::Internal(format!("response cannot be serialized: {error}"))
            .into_response();
    }
    // The source may be as large as its JSON.
    drop(value);
    let json = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, json)], chunks.into_body()).into_response()
}

/// Text in chunks.
#[derive(Debug, Default)]
struct Chunks {
    full: VecDeque<Bytes>,
    last: Vec<u8>,
    /// Size of the full chunks, in bytes.
    full_bytes: usize,
    /// Texts that become chunks of their own.
    shared: Vec<Bytes>,
}

impl Chunks {
    /// Returns the shared text with the memory of `text`. The serializer writes a raw JSON text at
    /// once, from its own memory.
    fn shared(&self, text: &[u8]) -> Option<Bytes> {
        let mut shared = self.shared.iter();
        let shared = shared.find(|shared| std::ptr::eq(shared.as_ref(), text));
        shared.cloned()
    }

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
        if let Some(shared) = self.shared(text) {
            self.end_chunk();
            self.full_bytes += shared.len();
            self.full.push_back(shared);
            return Ok(text.len());
        }
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
        let chunk = next_chunk(&mut self.chunks);
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
    use futures_util::StreamExt;
    use serde_json::value::RawValue;
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
    async fn shared_texts_are_sent_from_their_memory() {
        let raw = |size: usize| RawValue::from_string(format!("\"{}\"", "x".repeat(size))).unwrap();
        let (short, long) = (raw(10), raw(MIN_SHARED));
        let texts = [&short, &long].map(|raw| Bytes::copy_from_slice(raw.get().as_bytes()));
        // The bytes own the memory that the value refers to.
        let [first, second] = texts
            .each_ref()
            .map(|text| serde_json::from_slice(text).unwrap());
        let value: [&RawValue; 3] = [first, second, &long];
        let whole = serde_json::to_vec(&value).unwrap();
        let response = SharingJson(value, texts.to_vec()).into_response();
        let mut body = response.into_body().into_data_stream();
        let mut sent = Vec::new();
        let mut has_shared = false;
        while let Some(chunk) = body.next().await {
            let chunk = chunk.unwrap();
            has_shared |= std::ptr::eq(chunk.as_ref(), texts[1].as_ref());
            sent.extend_from_slice(&chunk);
        }
        assert!(has_shared && sent == whole);
    }

    #[tokio::test]
    async fn response_has_the_type_and_the_length() {
        let response = LargeJson(json!({ "a": "x".repeat(10_000) })).into_response();
        assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
        assert_eq!(response.body().size_hint().exact(), Some(10_008));
    }
}

//! Reads server-sent events frame by frame and keeps the bytes they came as.

use std::time::Duration;

use bytes::{Bytes, BytesMut};

/// How long a stream may stay silent unless a test says otherwise: longer than two heartbeats.
const PATIENCE: Duration = Duration::from_secs(40);

/// One frame: everything up to and including a blank line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SseFrame {
    /// The `event` field.
    pub event: Option<String>,
    /// The `data` lines, joined by line feeds.
    pub data: Option<String>,
    /// The `id` field.
    pub id: Option<String>,
    /// The `retry` field.
    pub retry: Option<String>,
    /// Comment lines without their colon and the blank after it.
    pub comments: Vec<String>,
    /// The frame as it came over the wire.
    pub raw: Bytes,
}

impl SseFrame {
    /// The event's name; `message` when the frame names none, as browsers have it.
    #[must_use]
    pub fn name(&self) -> &str {
        self.event.as_deref().unwrap_or("message")
    }

    /// Whether the frame holds comments only, as heartbeats do.
    #[must_use]
    pub fn is_comment(&self) -> bool {
        self.event.is_none()
            && self.data.is_none()
            && self.id.is_none()
            && !self.comments.is_empty()
    }

    /// The data as JSON.
    ///
    /// # Errors
    /// When there is no data or it is not JSON.
    pub fn json(&self) -> Result<serde_json::Value, SseError> {
        let data = self.data.as_deref().unwrap_or_default();
        serde_json::from_str(data).map_err(|source| SseError::NotJson {
            event: self.name().to_owned(),
            source,
        })
    }

    fn parse(raw: Bytes) -> Result<Self, SseError> {
        let text = std::str::from_utf8(&raw).map_err(|_| SseError::NotUtf8 { raw: raw.clone() })?;
        let mut frame = Self::default();
        for line in lines(text) {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
            match field {
                "" => frame.comments.push(value),
                "event" => frame.event = Some(value),
                "id" => frame.id = Some(value),
                "retry" => frame.retry = Some(value),
                "data" => match &mut frame.data {
                    Some(data) => {
                        data.push('\n');
                        data.push_str(&value);
                    }
                    None => frame.data = Some(value),
                },
                _ => {
                    return Err(SseError::UnknownField {
                        line: line.to_owned(),
                    });
                }
            }
        }
        frame.raw = raw;
        Ok(frame)
    }
}

/// Why a stream could not be read on.
#[derive(Debug, thiserror::Error)]
pub enum SseError {
    /// A frame is not UTF-8.
    #[error("frame is not utf-8: {raw:?}")]
    NotUtf8 {
        /// The frame as it came.
        raw: Bytes,
    },
    /// Browsers pass over unknown fields; a server under test has no reason to send one.
    #[error("unknown field in line {line:?}")]
    UnknownField {
        /// The line as it came.
        line: String,
    },
    /// The data was to be JSON.
    #[error("data of event {event:?} is not json")]
    NotJson {
        /// The event's name.
        event: String,
        /// What the JSON reader says.
        source: serde_json::Error,
    },
    /// The stream ended inside a frame.
    #[error("stream ended inside a frame: {rest:?}")]
    Truncated {
        /// The bytes after the last whole frame.
        rest: Bytes,
    },
    /// Nothing came for too long.
    #[error("no frame within {0:?}")]
    Silence(Duration),
    /// The connection failed.
    #[error("stream broke off")]
    Transport(#[from] reqwest::Error),
}

/// Cuts a byte stream into frames, however the bytes arrive.
#[derive(Debug, Default)]
pub struct SseDecoder {
    buffer: BytesMut,
    /// Bytes of the buffer known to hold no frame end.
    searched: usize,
}

impl SseDecoder {
    /// Adds bytes as they arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Takes the next whole frame out; `None` until more bytes arrive.
    ///
    /// # Errors
    /// When the frame is not valid; the next call goes on behind it.
    pub fn next_frame(&mut self) -> Result<Option<SseFrame>, SseError> {
        let Some(end) = frame_end(&self.buffer, self.searched) else {
            self.searched = self.buffer.len().saturating_sub(3);
            return Ok(None);
        };
        self.searched = 0;
        SseFrame::parse(self.buffer.split_to(end).freeze()).map(Some)
    }

    /// Bytes after the last whole frame.
    #[must_use]
    pub fn rest(&self) -> Bytes {
        Bytes::copy_from_slice(&self.buffer)
    }
}

/// Where the first blank line at or after `from` ends. A frame may be nothing but that line.
fn frame_end(buffer: &[u8], from: usize) -> Option<usize> {
    let newline = |at: usize| match buffer.get(at..)? {
        [b'\r', b'\n', ..] => Some(2),
        [b'\n', ..] => Some(1),
        _ => None,
    };
    if let Some(length) = newline(0) {
        return Some(length);
    }
    (from..buffer.len()).find_map(|at| {
        let first = newline(at)?;
        let second = newline(at + first)?;
        Some(at + first + second)
    })
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n')
        .map(|line| line.strip_suffix('\r').unwrap_or(line))
        .filter(|line| !line.is_empty())
}

/// The frames of an HTTP response.
#[derive(Debug)]
pub struct SseStream {
    response: reqwest::Response,
    decoder: SseDecoder,
    patience: Duration,
}

impl SseStream {
    /// Reads the body of `response`.
    #[must_use]
    pub fn new(response: reqwest::Response) -> Self {
        Self {
            response,
            decoder: SseDecoder::default(),
            patience: PATIENCE,
        }
    }

    /// Gives up when no frame comes for this long.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The response, for its status and headers.
    #[must_use]
    pub fn response(&self) -> &reqwest::Response {
        &self.response
    }

    /// The next frame, comments included; `None` when the stream has ended.
    ///
    /// # Errors
    /// When the connection breaks, stays silent, or sends what is no event.
    pub async fn next_frame(&mut self) -> Result<Option<SseFrame>, SseError> {
        let patience = self.patience;
        tokio::time::timeout(patience, self.read_frame())
            .await
            .unwrap_or(Err(SseError::Silence(patience)))
    }

    /// The next frame with this event name; frames before it are dropped. `None` when the stream ends first.
    ///
    /// # Errors
    /// As [`Self::next_frame`].
    pub async fn next_named(&mut self, event: &str) -> Result<Option<SseFrame>, SseError> {
        while let Some(frame) = self.next_frame().await? {
            if frame.name() == event {
                return Ok(Some(frame));
            }
        }
        Ok(None)
    }

    /// Every frame from here to the end of the stream, comments left out.
    ///
    /// # Errors
    /// As [`Self::next_frame`].
    pub async fn collect(mut self) -> Result<Vec<SseFrame>, SseError> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next_frame().await? {
            if !frame.is_comment() {
                frames.push(frame);
            }
        }
        Ok(frames)
    }

    async fn read_frame(&mut self) -> Result<Option<SseFrame>, SseError> {
        loop {
            if let Some(frame) = self.decoder.next_frame()? {
                return Ok(Some(frame));
            }
            match self.response.chunk().await? {
                Some(bytes) => self.decoder.push(&bytes),
                None if self.decoder.buffer.is_empty() => return Ok(None),
                None => {
                    return Err(SseError::Truncated {
                        rest: self.decoder.rest(),
                    });
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;

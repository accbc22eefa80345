//! Reads server-sent events frame by frame and retains their raw bytes.

use std::time::Duration;

use bytes::{Bytes, BytesMut};

/// Default time a stream may be silent: longer than two heartbeats.
const DEFAULT_SILENCE_LIMIT: Duration = Duration::from_secs(40);

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
    /// Comment lines without their colon and the following blank.
    pub comments: Vec<String>,
    /// The frame as received.
    pub raw: Bytes,
}

impl SseFrame {
    /// Returns the event's name; `message` if the frame has none, as browsers do.
    #[must_use]
    pub fn name(&self) -> &str {
        self.event.as_deref().unwrap_or("message")
    }

    /// Reports whether the frame has only comments, as heartbeats do.
    #[must_use]
    pub fn is_comment(&self) -> bool {
        self.event.is_none()
            && self.data.is_none()
            && self.id.is_none()
            && !self.comments.is_empty()
    }

    /// Returns the data as JSON.
    ///
    /// # Errors
    /// Returns an error if there is no data or it is not JSON.
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

/// Error while reading a stream.
#[derive(Debug, thiserror::Error)]
pub enum SseError {
    /// A frame is not UTF-8.
    #[error("frame is not utf-8: {raw:?}")]
    NotUtf8 {
        /// The frame as received.
        raw: Bytes,
    },
    /// A line has an unknown field. Browsers ignore these; a server under test has no reason to
    /// send one.
    #[error("unknown field in line {line:?}")]
    UnknownField {
        /// The line as received.
        line: String,
    },
    /// The data is not JSON.
    #[error("data of event {event:?} is not json")]
    NotJson {
        /// The event's name.
        event: String,
        /// Error of the JSON parser.
        source: serde_json::Error,
    },
    /// The stream ended inside a frame.
    #[error("stream ended inside a frame: {rest:?}")]
    Truncated {
        /// The bytes after the last whole frame.
        rest: Bytes,
    },
    /// No frame arrived in time.
    #[error("no frame within {0:?}")]
    Silence(Duration),
    /// The connection failed.
    #[error("stream was interrupted")]
    Transport(#[from] reqwest::Error),
}

/// Splits a byte stream into frames, independent of how the bytes arrive.
#[derive(Debug, Default)]
pub struct SseDecoder {
    buffer: BytesMut,
    /// Number of leading bytes of the buffer that contain no frame end.
    searched: usize,
}

impl SseDecoder {
    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Removes and returns the next whole frame; `None` if more bytes are needed.
    ///
    /// # Errors
    /// Returns an error if the frame is not valid; the next call continues after it.
    pub fn next_frame(&mut self) -> Result<Option<SseFrame>, SseError> {
        let Some(end) = frame_end(&self.buffer, self.searched) else {
            self.searched = self.buffer.len().saturating_sub(3);
            return Ok(None);
        };
        self.searched = 0;
        SseFrame::parse(self.buffer.split_to(end).freeze()).map(Some)
    }

    /// Returns the bytes after the last whole frame.
    #[must_use]
    pub fn rest(&self) -> Bytes {
        Bytes::copy_from_slice(&self.buffer)
    }
}

/// Returns the end of the first blank line at or after `from`. A frame may consist of that line
/// only.
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

/// Frames of an HTTP response.
#[derive(Debug)]
pub struct SseStream {
    response: reqwest::Response,
    decoder: SseDecoder,
    silence_limit: Duration,
}

impl SseStream {
    /// Reads the body of `response`.
    #[must_use]
    pub fn new(response: reqwest::Response) -> Self {
        Self {
            response,
            decoder: SseDecoder::default(),
            silence_limit: DEFAULT_SILENCE_LIMIT,
        }
    }

    /// Sets the maximum time without a frame.
    #[must_use]
    pub fn with_silence_limit(mut self, silence_limit: Duration) -> Self {
        self.silence_limit = silence_limit;
        self
    }

    /// Returns the response, for its status and headers.
    #[must_use]
    pub fn response(&self) -> &reqwest::Response {
        &self.response
    }

    /// Returns the next frame, comments included; `None` if the stream has ended.
    ///
    /// # Errors
    /// Returns an error if the connection breaks, stays silent, or sends an invalid frame.
    pub async fn next_frame(&mut self) -> Result<Option<SseFrame>, SseError> {
        let silence_limit = self.silence_limit;
        tokio::time::timeout(silence_limit, self.read_frame())
            .await
            .unwrap_or(Err(SseError::Silence(silence_limit)))
    }

    /// Returns the next frame with this event name and drops the frames before it. Returns `None`
    /// if the stream ends first.
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

    /// Returns every frame up to the end of the stream, without comments.
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

//! Stored form of a run's request. The texts of a large one are mostly those of the input, which the
//! run's echo has too; they are stored only there.

use std::collections::HashMap;
use std::io::{self, Write};
use std::ops::Range;
use std::string::FromUtf8Error;

use deerflow_runtime::runs::store::StoredRunRequest;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::db::json::{from_json, json_text};

/// Minimum size of the echo of a large request, in bytes. Smaller requests are stored as they are.
pub(super) const LONG_TEXT: usize = 64 << 10;

/// Minimum size of a text that a large request omits, in bytes of JSON. The reference to it is
/// shorter.
const MIN_OMITTED: usize = 256;

/// Start of the JSON of a [`SharedRequest`].
const SHARED: &str = r#"{"echoed":"#;

/// JSON string that replaces a text that the echo has.
const EMPTY: &str = r#""""#;

/// Request without the texts that its echo has.
#[derive(Serialize, Deserialize)]
struct SharedRequest {
    /// Omitted texts, by position.
    echoed: Vec<EchoedText>,
    /// Request in which [`EMPTY`] replaces each omitted text.
    request: Box<RawValue>,
}

/// Text that a request omits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct EchoedText {
    /// Offset of the replaced text in the request, in bytes.
    at: usize,
    /// Range of the JSON string in the echo, in bytes.
    start: usize,
    end: usize,
}

/// Serializes a request whose echo is stored as `echo`.
pub(super) fn request_text(request: &StoredRunRequest, echo: &str) -> String {
    if echo.len() < LONG_TEXT {
        return json_text(request);
    }
    let mut writer = SharingWriter::new(echo);
    let written = serde_json::to_writer(&mut writer, request);
    let text = written.ok().and_then(|()| writer.into_text().ok());
    // `json_text` logs an error of the serialization.
    text.unwrap_or_else(|| json_text(request))
}

/// Parses a stored request. `echo` is the stored echo of the run.
pub(super) fn read_request(text: &str, echo: &str) -> Result<StoredRunRequest, String> {
    if text.starts_with(SHARED) {
        from_json(&with_echoed(&from_json(text)?, echo)?)
    } else {
        from_json(text)
    }
}

/// Returns the text of a request with its omitted texts.
fn with_echoed(stored: &SharedRequest, echo: &str) -> Result<String, String> {
    let request = stored.request.get();
    let mut whole = String::with_capacity(request.len() + echo.len());
    let mut copied = 0;
    for text in &stored.echoed {
        let missing = || format!("the echo of the run has no text at {text:?}");
        let before = request.get(copied..text.at).ok_or_else(missing)?;
        let omitted = echo.get(text.start..text.end).ok_or_else(missing)?;
        whole.extend([before, omitted]);
        copied = text.at + EMPTY.len();
    }
    whole += request
        .get(copied..)
        .ok_or("the request ends before its last text")?;
    Ok(whole)
}

/// Writer of a request's JSON that omits the long texts of the echo.
struct SharingWriter<'a> {
    /// Starts of the texts of the echo that may be omitted.
    known: HashMap<&'a [u8], usize>,
    json: Vec<u8>,
    strings: StringScan,
    echoed: Vec<EchoedText>,
}

impl<'a> SharingWriter<'a> {
    fn new(echo: &'a str) -> Self {
        let echo = echo.as_bytes();
        let mut strings = StringScan::default();
        let texts = echo.iter().enumerate();
        let texts = texts.filter_map(|(at, byte)| strings.end_at(at, *byte));
        Self {
            known: texts
                .filter(|text| text.len() >= MIN_OMITTED)
                .map(|text| (&echo[text.clone()], text.start))
                .collect(),
            json: Vec::new(),
            strings: StringScan::default(),
            echoed: Vec::new(),
        }
    }

    /// Returns the stored form.
    fn into_text(self) -> Result<String, FromUtf8Error> {
        let request = String::from_utf8(self.json)?;
        if self.echoed.is_empty() {
            return Ok(request);
        }
        let echoed = json_text(&self.echoed);
        Ok(format!(r#"{SHARED}{echoed},"request":{request}}}"#))
    }
}

impl SharingWriter<'_> {
    /// Appends a reference to the text of the echo that starts at `start`.
    fn omit(&mut self, start: usize, length: usize) {
        self.echoed.push(EchoedText {
            at: self.json.len(),
            start,
            end: start + length,
        });
        self.json.extend_from_slice(EMPTY.as_bytes());
    }
}

impl Write for SharingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Everything before this offset is in `json`. A message is one write, whose text is compared
        // before it is copied.
        let mut copied = 0;
        for (index, byte) in bytes.iter().enumerate() {
            let at = self.json.len() + index - copied;
            let string = self.strings.end_at(at, *byte);
            let Some(text) = string.filter(|text| text.len() >= MIN_OMITTED) else {
                continue;
            };
            if let Some(before) = text.start.checked_sub(self.json.len()) {
                let first = copied + before;
                if let Some(&start) = self.known.get(&bytes[first..=index]) {
                    self.json.extend_from_slice(&bytes[copied..first]);
                    self.omit(start, text.len());
                    copied = index + 1;
                }
            } else {
                self.json.extend_from_slice(&bytes[copied..=index]);
                copied = index + 1;
                if let Some(&start) = self.known.get(&self.json[text.clone()]) {
                    self.json.truncate(text.start);
                    self.omit(start, text.len());
                }
            }
        }
        self.json.extend_from_slice(&bytes[copied..]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Search for the strings of a JSON text.
#[derive(Debug, Default)]
struct StringScan {
    start: Option<usize>,
    is_escaped: bool,
}

impl StringScan {
    /// Reads the byte at `at`. Returns the range of the string that it ends, with its quotes.
    fn end_at(&mut self, at: usize, byte: u8) -> Option<Range<usize>> {
        let Some(start) = self.start else {
            self.start = (byte == b'"').then_some(at);
            return None;
        };
        if self.is_escaped {
            self.is_escaped = false;
            return None;
        }
        self.is_escaped = byte == b'\\';
        if byte != b'"' {
            return None;
        }
        self.start = None;
        Some(start..at + 1)
    }
}

#[cfg(test)]
#[path = "stored_request_tests.rs"]
mod tests;

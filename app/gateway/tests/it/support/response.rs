//! A response of the gateway under test.

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use serde_json::Value;

/// A response.
#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl HttpResponse {
    pub(crate) fn code(&self) -> u16 {
        self.status.as_u16()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("UTF-8")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    /// Returns the frames of a stream, without the heartbeat comments.
    pub(crate) fn frames(&self) -> Vec<&str> {
        let end = if self.text().contains('\r') {
            "\r\n\r\n"
        } else {
            "\n\n"
        };
        self.text()
            .split_inclusive(end)
            .filter(|frame| !frame.starts_with(':'))
            .collect()
    }

    /// Returns the event names of a stream.
    pub(crate) fn events(&self) -> Vec<&str> {
        self.text()
            .lines()
            .filter_map(|line| line.strip_prefix("event: "))
            .map(str::trim_end)
            .collect()
    }
}

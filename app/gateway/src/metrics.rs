//! What the gateway measures of itself, under the names that dashboards read.

use std::time::Duration;

use axum::http::{Method, StatusCode};
use metrics::{counter, gauge, histogram};
use tokio::time::Instant;

/// One answered request, by the pattern of its route: ids are no labels.
pub(crate) fn request_answered(method: &Method, route: Option<&str>, status: StatusCode, took: Duration) {
    let route = route.unwrap_or("unmatched").to_owned();
    let method = match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        // Clients can make up any number of others.
        _ => "other",
    };
    let labels = [("method", method.to_owned()), ("route", route), ("status", status.as_str().to_owned())];
    histogram!("deerflow_http_request_seconds", &labels[..2]).record(took);
    counter!("deerflow_http_requests_total", &labels).increment(1);
}

/// Counts as an open stream as long as it lives.
#[derive(Debug)]
pub(crate) struct OpenStream(());

impl OpenStream {
    pub(crate) fn new() -> Self {
        gauge!("deerflow_streams_active").increment(1.0);
        Self(())
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        gauge!("deerflow_streams_active").decrement(1.0);
    }
}

/// Waits for the first token of a run that a client asked for and follows.
#[derive(Debug)]
pub(crate) struct FirstToken(Option<Instant>);

impl FirstToken {
    /// Asked for at `since`; without it nothing is measured.
    pub(crate) fn awaited(since: Option<Instant>) -> Self {
        Self(since)
    }

    /// Sees an event on its way to the client: its name, and how its data begins.
    pub(crate) fn see(&mut self, event: &str, data: &[u8]) {
        if let Some(since) = self.0
            && is_token(event, data)
        {
            self.0 = None;
            histogram!("deerflow_first_token_seconds").record(since.elapsed());
        }
    }
}

/// Whether an event holds text of a model, and not the question or a tool's answer.
fn is_token(event: &str, data: &[u8]) -> bool {
    const FRAGMENT: &[u8] = b"\"AIMessageChunk\"";
    let name = event.split('|').next().unwrap_or_default();
    name == "messages/partial" || (name == "messages" && data.windows(FRAGMENT.len()).any(|part| part == FRAGMENT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_models_words_are_tokens() {
        assert!(is_token("messages|tools:1", br#"[{"type":"AIMessageChunk"},{}]"#) && is_token("messages/partial", b"[]"));
        for (event, data) in
            [("messages", &br#"[{"type":"human"},{}]"#[..]), ("messages/metadata", b"{}"), ("values", br#"{"AIMessageChunk":1}"#)]
        {
            assert!(!is_token(event, data), "{event}");
        }
    }
}

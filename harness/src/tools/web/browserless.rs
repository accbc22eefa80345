//! Adapter for Browserless, a self-hosted browser that returns a page's HTML after its scripts have
//! run.

use async_trait::async_trait;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use super::charset::decoded;
use super::failure::failed;
use super::ports::{Page, PageReader};
use super::readable;
use super::remote::Remote;
use crate::tools::ToolError;

/// Default base URL.
pub(super) const BASE: &str = "http://localhost:3032";

/// Client of a Browserless server.
#[derive(Debug)]
pub(super) struct Browserless {
    pub(super) remote: Remote,
    pub(super) token: Option<SecretString>,
    /// Wait conditions, in the fields of Browserless' API.
    pub(super) waits: Vec<(&'static str, Value)>,
}

#[async_trait]
impl PageReader for Browserless {
    async fn read(&self, url: &str) -> Result<Page, ToolError> {
        let mut body = json!({ "url": url });
        if let Some(fields) = body.as_object_mut() {
            fields.extend(
                self.waits
                    .iter()
                    .map(|(key, value)| ((*key).to_owned(), value.clone())),
            );
        }
        let mut request = self.remote.post("/content").json(&body);
        if let Some(token) = &self.token {
            request = request.query(&[("token", token.expose_secret())]);
        }
        let answer = self.remote.ask(request).await?;
        let html = decoded(&answer.body, &answer.content_type);
        if html.trim().is_empty() {
            return Err(failed("Browserless found nothing on this page"));
        }
        readable::read(html, url.to_owned()).await
    }
}

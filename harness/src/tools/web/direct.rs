//! Fetches pages without a provider. Redirects are followed one at a time, and each address is
//! checked when the connection is made.

use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use reqwest::{Method, Response, StatusCode, Url};

use super::charset::decoded;
use super::failure::failed;
use super::ports::{Page, PageReader};
use super::readable;
use crate::net::{Forbidden, GuardedClient, forbidden};
use crate::tools::ToolError;

/// Maximum number of redirects.
const MAX_REDIRECTS: usize = 5;
/// Maximum number of bytes read of a page.
const MAX_PAGE_BYTES: usize = 5 << 20;

/// Fetches pages with a guarded client.
#[derive(Debug)]
pub(super) struct Direct {
    pub(super) client: GuardedClient,
    /// Time limit of a page, including all redirects.
    pub(super) limit: Duration,
}

#[async_trait]
impl PageReader for Direct {
    async fn read(&self, url: &str) -> Result<Page, ToolError> {
        let url = self.client.read(url).map_err(address_error)?;
        let fetched = tokio::time::timeout(self.limit, self.follow(url)).await;
        let (url, kind, body) = fetched.map_err(|_| {
            failed(format_args!(
                "the page took longer than {} seconds",
                self.limit.as_secs_f64()
            ))
        })??;
        let text = decoded(&body, &kind);
        match Kind::of(&kind, &text) {
            Kind::Page => readable::read(text, url.into()).await,
            Kind::Text => Ok(Page {
                title: Some(name_of(&url)),
                text,
            }),
            Kind::Other => {
                let kind = kind.split(';').next().unwrap_or_default().trim();
                let kind = if kind.is_empty() {
                    "of no known kind"
                } else {
                    kind
                };
                Err(failed(format_args!(
                    "this address has no readable text: its content is {kind}"
                )))
            }
        }
    }
}

impl Direct {
    /// Fetches `url` and follows redirects. Returns the final address, its content type and the
    /// body.
    async fn follow(&self, mut url: Url) -> Result<(Url, String, Vec<u8>), ToolError> {
        for _ in 0..=MAX_REDIRECTS {
            let request = self
                .client
                .request(Method::GET, url.clone())
                .map_err(address_error)?;
            let accepted =
                "text/html,application/xhtml+xml,text/*;q=0.9,application/json;q=0.8,*/*;q=0.5";
            let response = request
                .header(ACCEPT, accepted)
                .send()
                .await
                .map_err(|error| transport_error(&error))?;
            let Some(next) = next_of(&response, &url) else {
                return Ok((url, type_of(&response), body_of(response).await?));
            };
            url =
                next.ok_or_else(|| failed("the page redirects to an address that cannot be read"))?;
        }
        Err(failed(format_args!(
            "the page redirects more than {MAX_REDIRECTS} times"
        )))
    }
}

/// Returns the target of a redirect: `None` if the response is not a redirect, `Some(None)` if the
/// target is not a valid address.
fn next_of(response: &Response, url: &Url) -> Option<Option<Url>> {
    let redirects = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let to = response.headers().get(LOCATION).filter(|_| redirects)?;
    Some(to.to_str().ok().and_then(|to| url.join(to).ok()))
}

fn type_of(response: &Response) -> String {
    response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_ascii_lowercase()
}

/// Reads the body up to the size limit.
async fn body_of(mut response: Response) -> Result<Vec<u8>, ToolError> {
    let status = response.status();
    if status != StatusCode::OK && status != StatusCode::NON_AUTHORITATIVE_INFORMATION {
        return Err(failed(format_args!("the page answered {status}")));
    }
    let mut body = Vec::new();
    while body.len() < MAX_PAGE_BYTES
        && let Some(piece) = response
            .chunk()
            .await
            .map_err(|error| transport_error(&error))?
    {
        body.extend_from_slice(&piece);
    }
    body.truncate(MAX_PAGE_BYTES);
    Ok(body)
}

fn address_error(why: Forbidden) -> ToolError {
    failed(format_args!("this address cannot be read: {why}"))
}

fn transport_error(error: &reqwest::Error) -> ToolError {
    match forbidden(error) {
        Some(why) => failed(format_args!("this address cannot be read: {why}")),
        None if error.is_connect() => failed("the page's server cannot be reached"),
        None => failed("the page's server closed the connection during its answer"),
    }
}

/// Kind of content that a body can be read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Page,
    Text,
    Other,
}

impl Kind {
    fn of(content_type: &str, text: &str) -> Self {
        let kind = content_type.split(';').next().unwrap_or_default().trim();
        let is_text = || {
            !text.contains('\u{0}')
                && text.chars().filter(|c| *c == '\u{fffd}').count() * 10 <= text.chars().count()
        };
        match kind {
            "text/html" | "application/xhtml+xml" => Self::Page,
            "" | "application/octet-stream" if text.trim_start().starts_with('<') && is_text() => {
                Self::Page
            }
            "" | "application/octet-stream" if is_text() => Self::Text,
            "application/json"
            | "application/xml"
            | "application/javascript"
            | "application/yaml"
            | "application/x-yaml"
            | "application/toml"
            | "application/x-ndjson" => Self::Text,
            _ if kind.starts_with("text/")
                || kind.ends_with("+json")
                || kind.ends_with("+xml") && kind != "image/svg+xml" =>
            {
                Self::Text
            }
            _ => Self::Other,
        }
    }
}

/// Returns a title for a text that has none: its file name or its host.
fn name_of(url: &Url) -> String {
    let last = url
        .path_segments()
        .and_then(|mut parts| parts.next_back())
        .filter(|name| !name.is_empty());
    last.or(url.host_str()).unwrap_or_default().to_owned()
}

#[cfg(test)]
#[path = "direct_tests.rs"]
mod tests;

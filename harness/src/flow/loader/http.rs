//! Documents of HTTP addresses.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Response, StatusCode, Url};
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::errors::{failed, invalid, no_hosts, not_allowed};
use super::http_request::HttpRequest;
use crate::flow::adapter::FlowError;
use crate::flow::documents::{Documents, MAX_DOCUMENTS_BYTES};
use crate::net::{Denied, Egress, GuardedClient, HostRules, Lookup, forbidden};

/// Timeout of a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of a request with its response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the hosts of the current configuration, as [`HostRules::only`] reads them.
pub type CurrentHosts = Arc<dyn Fn() -> Vec<String> + Send + Sync>;

/// Loads the documents of listed hosts. Follows no redirect.
pub struct HttpLoader {
    hosts: CurrentHosts,
    lookup: Arc<dyn Lookup>,
}

impl fmt::Debug for HttpLoader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpLoader").finish_non_exhaustive()
    }
}

impl HttpLoader {
    /// Creates a loader of these hosts.
    pub fn new(hosts: CurrentHosts, lookup: Arc<dyn Lookup>) -> Self {
        Self { hosts, lookup }
    }

    /// Sends the request of a node and returns the body of the response as one document.
    pub(super) async fn load(&self, config: &Map<String, Value>) -> Result<Value, FlowError> {
        let request = HttpRequest::read(config)?;
        let url = Url::parse(&request.url);
        let url = url.map_err(|_| invalid("`url`: expected an absolute http or https address"))?;
        let client = self.client_for(&url)?;
        let place = place_of(&url);
        let refused = |reason: &dyn fmt::Display| not_allowed(format!("{place}: {reason}"));
        let mut call = client
            .request(request.method, url)
            .map_err(|reason| refused(&reason))?
            .headers(request.headers);
        if let Some(body) = request.body {
            call = call.body(body);
        }
        let work = async {
            let response = call.send().await.map_err(|error| match forbidden(&error) {
                Some(reason) => refused(reason),
                None => unreachable(&place, error),
            })?;
            text_of(response, &place).await
        };
        let text = timeout(REQUEST_TIMEOUT, work).await.map_err(|_| {
            let seconds = REQUEST_TIMEOUT.as_secs();
            failed(format!("{place}: no response within {seconds} s")).retryable(true)
        })??;
        let mut documents = Documents::default();
        documents.add(&place, &text);
        Ok(documents.into_value())
    }

    /// Returns a client for the host of an address, if the configuration lists the host.
    fn client_for(&self, url: &Url) -> Result<GuardedClient, FlowError> {
        let hosts = (self.hosts)();
        if hosts.is_empty() {
            return Err(no_hosts());
        }
        let rules = HostRules::only(&hosts)
            .map_err(|error| not_allowed(format!("flows.loader_hosts is not valid: {error}")))?;
        let host = url.host_str().unwrap_or_default();
        let target = rules
            .target(host, url.port_or_known_default())
            .map_err(|denied| not_listed(host, &denied))?;
        let egress = Egress {
            // The operator listed the host, so it may be a private one.
            hosts: vec![target.host],
            ..Egress::default()
        };
        let lookup = self.lookup.clone();
        GuardedClient::new(egress, lookup, |client| {
            client.connect_timeout(CONNECT_TIMEOUT)
        })
        .map_err(|error| failed(format!("no HTTP client can be created: {error}")))
    }
}

fn not_listed(host: &str, denied: &Denied) -> FlowError {
    not_allowed(format!(
        "{denied}; the operator can add {host:?} to flows.loader_hosts"
    ))
}

/// Returns the address without query and credentials, which may be secret.
fn place_of(url: &Url) -> String {
    let mut place = url.clone();
    place.set_query(None);
    place.set_fragment(None);
    // Fails only for addresses without a host, which have no credentials.
    _ = place.set_username("");
    _ = place.set_password(None);
    place.to_string()
}

fn unreachable(place: &str, error: reqwest::Error) -> FlowError {
    let error = error.without_url();
    let mut message = format!("{place}: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        message = format!("{message}: {error}");
        cause = error.source();
    }
    failed(message).retryable(true)
}

/// Reads a response up to the limit of a port; the document is then truncated.
async fn text_of(mut response: Response, place: &str) -> Result<String, FlowError> {
    let status = response.status();
    if !status.is_success() {
        let error = failed(format!("{place}: the response has HTTP status {status}"));
        return Err(error
            .retryable(is_retryable(status))
            .with_detail("httpStatus", status.as_u16()));
    }
    let mut body = Vec::new();
    while body.len() <= MAX_DOCUMENTS_BYTES {
        let chunk = response.chunk().await;
        match chunk.map_err(|error| unreachable(place, error))? {
            Some(bytes) => body.extend_from_slice(&bytes),
            None => break,
        }
    }
    let is_cut = body.len() > MAX_DOCUMENTS_BYTES;
    match String::from_utf8(body) {
        Ok(text) => Ok(text),
        // The limit may cut a letter.
        Err(error) if is_cut => Ok(String::from_utf8_lossy(error.as_bytes()).into_owned()),
        Err(_) => Err(failed(format!("{place}: the response is not UTF-8 text"))),
    }
}

fn is_retryable(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status.as_u16(), 408 | 409 | 425 | 429)
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;

//! HTTP client for the services of the container sandbox; every call has a timeout and a maximum
//! response size.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::{Client, ClientBuilder, Method, Url};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::{CallFailure, ContainerError};

/// Timeout for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of a management response, in bytes.
const MAX_RESPONSE_BYTES: usize = 4 << 20;
/// Maximum length of an error text, in characters.
const MAX_ERROR_CHARS: usize = 300;

/// Base address of services that are called through a socket.
const PLACEHOLDER_BASE: &str = "http://localhost";

/// A service that is called over HTTP.
#[derive(Debug, Clone)]
pub(super) struct HttpService {
    name: String,
    client: Client,
    /// Prefix of every address, without a final slash.
    base: String,
    key: Option<SecretString>,
}

/// A request.
pub(super) struct Call<'a> {
    method: Method,
    path: &'a str,
    query: Vec<(&'static str, String)>,
    body: Option<Value>,
    time: Duration,
    bytes: usize,
}

/// A response.
pub(super) struct ServiceResponse {
    pub(super) status: u16,
    body: Bytes,
    peer: String,
}

impl HttpService {
    /// Returns a service behind a local socket.
    pub(super) fn at_socket(name: &str, socket: &Path) -> Result<Self, reqwest::Error> {
        let name = format!("{name} at {}", socket.display());
        Ok(Self {
            name,
            client: client_builder().unix_socket(socket).build()?,
            base: PLACEHOLDER_BASE.to_owned(),
            key: None,
        })
    }

    /// Returns a service at an address.
    pub(super) fn at(name: &str, base: &Url) -> Result<Self, reqwest::Error> {
        Ok(Self::without_address(name)?.with_base(base))
    }

    /// Returns a service whose address is set later by [`with_base`](Self::with_base).
    pub(super) fn without_address(name: &str) -> Result<Self, reqwest::Error> {
        Ok(Self {
            name: name.to_owned(),
            client: client_builder().build()?,
            base: PLACEHOLDER_BASE.to_owned(),
            key: None,
        })
    }

    /// Returns the same service at another address; both share the connection pool.
    pub(super) fn with_base(&self, base: &Url) -> Self {
        Self {
            base: base.as_str().trim_end_matches('/').to_owned(),
            ..self.clone()
        }
    }

    /// Sets the API key that is sent with each call.
    pub(super) fn with_key(self, key: Option<SecretString>) -> Self {
        Self { key, ..self }
    }

    /// Sends a request and returns the response with any status.
    pub(super) async fn call(&self, call: Call<'_>) -> Result<ServiceResponse, ContainerError> {
        let timed_out = |_| CallFailure::Late;
        let outcome = tokio::time::timeout(call.time, self.send(call))
            .await
            .map_err(timed_out)
            .and_then(|outcome| outcome);
        let (status, body) = outcome.map_err(|fault| ContainerError::Call {
            peer: self.name.clone(),
            fault,
        })?;
        Ok(ServiceResponse {
            status,
            body,
            peer: self.name.clone(),
        })
    }

    async fn send(&self, call: Call<'_>) -> Result<(u16, Bytes), CallFailure> {
        let mut request = self
            .client
            .request(call.method, format!("{}{}", self.base, call.path))
            .query(&call.query);
        if let Some(body) = &call.body {
            request = request.json(body);
        }
        if let Some(key) = &self.key {
            request = request.header("X-API-Key", key.expose_secret());
        }
        let mut response = request.send().await?;
        let mut body = BytesMut::new();
        while let Some(piece) = response.chunk().await? {
            if body.len() + piece.len() > call.bytes {
                return Err(CallFailure::TooLong);
            }
            body.extend_from_slice(&piece);
        }
        Ok((response.status().as_u16(), body.freeze()))
    }
}

impl<'a> Call<'a> {
    pub(super) fn get(path: &'a str) -> Self {
        Self {
            method: Method::GET,
            path,
            query: Vec::new(),
            body: None,
            time: Duration::from_secs(15),
            bytes: MAX_RESPONSE_BYTES,
        }
    }

    pub(super) fn post(path: &'a str, body: Value) -> Self {
        Self {
            method: Method::POST,
            body: Some(body),
            time: Duration::from_secs(30),
            ..Self::get(path)
        }
    }

    pub(super) fn delete(path: &'a str) -> Self {
        Self {
            method: Method::DELETE,
            ..Self::get(path)
        }
    }

    pub(super) fn query_parameter(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.query.push((name, value.to_string()));
        self
    }

    pub(super) fn within(self, time: Duration) -> Self {
        Self { time, ..self }
    }

    pub(super) fn max_bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }
}

impl ServiceResponse {
    /// Parses the body; a status outside of 200 to 299 is an error.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, ContainerError> {
        self.check_status()?;
        let unreadable = |error: serde_json::Error| ContainerError::Unreadable {
            peer: self.peer.clone(),
            why: error.to_string(),
        };
        serde_json::from_slice(&self.body).map_err(unreadable)
    }

    /// Fails for a status outside of 200 to 299.
    pub(super) fn check_status(&self) -> Result<(), ContainerError> {
        if (200..300).contains(&self.status) {
            Ok(())
        } else {
            Err(self.status_error())
        }
    }

    /// Returns the status as an error.
    pub(super) fn status_error(&self) -> ContainerError {
        ContainerError::Refused {
            peer: self.peer.clone(),
            status: self.status,
            said: self.message(),
        }
    }

    /// Returns the error text of the body, truncated.
    pub(super) fn message(&self) -> String {
        let body: Option<Value> = serde_json::from_slice(&self.body).ok();
        let message = ["message", "detail"]
            .iter()
            .find_map(|key| Some(body.as_ref()?.get(key)?.as_str()?.to_owned()));
        let message = message.unwrap_or_else(|| String::from_utf8_lossy(&self.body).into_owned());
        message
            .chars()
            .filter(|c| !c.is_control())
            .take(MAX_ERROR_CHARS)
            .collect()
    }

    /// Raw body.
    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }
}

/// These services are local: no proxy and no redirects.
fn client_builder() -> ClientBuilder {
    Client::builder()
        .no_proxy()
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true)
}

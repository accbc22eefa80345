//! Calls to the services that containers need, with an end to every wait and to every answer.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::{Client, ClientBuilder, Method, Url};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::{CallFault, ContainerError};

/// Longer than this nobody waits for a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// The longest answer of a service that manages.
const USUAL_BYTES: usize = 4 << 20;
/// How much of a refusal is told.
const TOLD_CHARS: usize = 300;

/// The host of calls that need no name.
const NOWHERE: &str = "http://localhost";

/// A service that is called over HTTP.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    name: String,
    client: Client,
    /// The beginning of every address, without a slash at its end.
    base: String,
    key: Option<SecretString>,
}

/// A call.
pub(super) struct Call<'a> {
    method: Method,
    path: &'a str,
    query: Vec<(&'static str, String)>,
    body: Option<Value>,
    time: Duration,
    bytes: usize,
}

/// What was answered.
pub(super) struct Answer {
    pub(super) status: u16,
    body: Bytes,
    peer: String,
}

impl Peer {
    /// A service behind a socket of this machine.
    pub(super) fn at_socket(name: &str, socket: &Path) -> Result<Self, reqwest::Error> {
        let name = format!("{name} at {}", socket.display());
        Ok(Self {
            name,
            client: usual().unix_socket(socket).build()?,
            base: NOWHERE.to_owned(),
            key: None,
        })
    }

    /// A service at an address.
    pub(super) fn at(name: &str, base: &Url) -> Result<Self, reqwest::Error> {
        Ok(Self::anywhere(name)?.moved_to(base))
    }

    /// A service whose address is [to be said](Self::moved_to).
    pub(super) fn anywhere(name: &str) -> Result<Self, reqwest::Error> {
        Ok(Self {
            name: name.to_owned(),
            client: usual().build()?,
            base: NOWHERE.to_owned(),
            key: None,
        })
    }

    /// The same kind of service at another address, over the same pool of connections.
    pub(super) fn moved_to(&self, base: &Url) -> Self {
        Self {
            base: base.as_str().trim_end_matches('/').to_owned(),
            ..self.clone()
        }
    }

    /// The same, with a key in each call.
    pub(super) fn with_key(self, key: Option<SecretString>) -> Self {
        Self { key, ..self }
    }

    /// Calls, whatever the status of the answer will be.
    pub(super) async fn call(&self, call: Call<'_>) -> Result<Answer, ContainerError> {
        let late = |_| CallFault::Late;
        let answered = tokio::time::timeout(call.time, self.send(call))
            .await
            .map_err(late)
            .and_then(|answered| answered);
        let (status, body) = answered.map_err(|fault| ContainerError::Call {
            peer: self.name.clone(),
            fault,
        })?;
        Ok(Answer {
            status,
            body,
            peer: self.name.clone(),
        })
    }

    async fn send(&self, call: Call<'_>) -> Result<(u16, Bytes), CallFault> {
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
        let mut answer = request.send().await?;
        let mut body = BytesMut::new();
        while let Some(piece) = answer.chunk().await? {
            if body.len() + piece.len() > call.bytes {
                return Err(CallFault::TooLong);
            }
            body.extend_from_slice(&piece);
        }
        Ok((answer.status().as_u16(), body.freeze()))
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
            bytes: USUAL_BYTES,
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

    pub(super) fn asking(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.query.push((name, value.to_string()));
        self
    }

    pub(super) fn within(self, time: Duration) -> Self {
        Self { time, ..self }
    }

    pub(super) fn of_at_most(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }
}

impl Answer {
    /// What the body says; a status above 299 is a refusal.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, ContainerError> {
        self.done()?;
        let unreadable = |error: serde_json::Error| ContainerError::Unreadable {
            peer: self.peer.clone(),
            why: error.to_string(),
        };
        serde_json::from_slice(&self.body).map_err(unreadable)
    }

    /// Refuses a status above 299.
    pub(super) fn done(&self) -> Result<(), ContainerError> {
        if (200..300).contains(&self.status) {
            Ok(())
        } else {
            Err(self.refusal())
        }
    }

    /// The status as a refusal.
    pub(super) fn refusal(&self) -> ContainerError {
        ContainerError::Refused {
            peer: self.peer.clone(),
            status: self.status,
            said: self.words(),
        }
    }

    /// Its own words, cut.
    pub(super) fn words(&self) -> String {
        let body: Option<Value> = serde_json::from_slice(&self.body).ok();
        let message = ["message", "detail"]
            .iter()
            .find_map(|key| Some(body.as_ref()?.get(key)?.as_str()?.to_owned()));
        let words = message.unwrap_or_else(|| String::from_utf8_lossy(&self.body).into_owned());
        words
            .chars()
            .filter(|c| !c.is_control())
            .take(TOLD_CHARS)
            .collect()
    }

    /// The body as it came.
    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }
}

/// Proxies are for the world outside, and nobody here sends on to somewhere else.
fn usual() -> ClientBuilder {
    Client::builder()
        .no_proxy()
        .connect_timeout(CONNECT_LIMIT)
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true)
}

//! One keep-alive connection with minimal client cost.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context as _, bail};
use axum::body::{Body, Bytes};
use futures_util::StreamExt as _;
use hyper::{
    Request, Response,
    body::Incoming,
    client::conn::http1::{self, SendRequest},
    header,
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{
    net::TcpStream,
    task::JoinSet,
    time::{Instant, timeout},
};

use super::frames::FrameCounter;

/// Maximum time of a run or a connection; a longer one has failed.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Times of one run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub(super) first_token: Duration,
    pub(super) end: Duration,
    pub(super) frames: u64,
    /// Bytes of the stream, without headers.
    pub(super) bytes: u64,
    pub(super) ended_at: Instant,
}

/// Client that makes one request after the other.
pub(super) struct Client {
    address: SocketAddr,
    connection: Option<Connection>,
}

struct Connection {
    sender: SendRequest<Body>,
    /// Drives the connection's I/O; ends with the connection.
    _driver: JoinSet<()>,
}

impl Client {
    pub(super) async fn connect(address: SocketAddr) -> anyhow::Result<Self> {
        let connection = timeout(TIMEOUT, Connection::open(address)).await;
        let connection = Some(connection.context("no connection in time")??);
        Ok(Self {
            address,
            connection,
        })
    }

    /// Makes one run by a request to `path` and expects this many tokens; the connection is
    /// replaced after a failure.
    pub(super) async fn run(
        &mut self,
        path: &str,
        body: Bytes,
        tokens: u64,
    ) -> anyhow::Result<Sample> {
        let run = timeout(TIMEOUT, self.try_run(path, body, tokens));
        let outcome = run
            .await
            .unwrap_or_else(|_| Err(anyhow::anyhow!("run not finished within {TIMEOUT:?}")));
        if outcome.is_err() {
            self.connection = None;
        }
        outcome
    }

    /// Sends a request and returns the JSON of its response.
    pub(super) async fn post(&mut self, path: &str, body: Bytes) -> anyhow::Result<Value> {
        let address = self.address;
        let response = self.connection().await?.post(address, path, body).await?;
        let body = axum::body::to_bytes(Body::new(response.into_body()), 64 << 20).await?;
        serde_json::from_slice(&body).with_context(|| format!("answer of POST {path}"))
    }

    async fn connection(&mut self) -> anyhow::Result<&mut Connection> {
        Ok(match &mut self.connection {
            Some(connection) => connection,
            empty => empty.insert(Connection::open(self.address).await?),
        })
    }

    async fn try_run(&mut self, path: &str, body: Bytes, tokens: u64) -> anyhow::Result<Sample> {
        let address = self.address;
        let connection = self.connection().await?;
        let started = Instant::now();
        let response = connection.post(address, path, body).await?;
        let mut stream = Body::new(response.into_body()).into_data_stream();
        let mut counter = FrameCounter::default();
        let (mut first_token, mut ended_at, mut length) = (None, None, 0);
        while let Some(bytes) = stream.next().await {
            let bytes = bytes?;
            length += bytes.len() as u64;
            counter.push(&bytes);
            if first_token.is_none() && counter.tokens > 0 {
                first_token = Some(started.elapsed());
            }
            if ended_at.is_none() && counter.ended {
                ended_at = Some(Instant::now());
            }
        }
        let ended_at = ended_at.context("stream without `event: end`")?;
        anyhow::ensure!(
            counter.tokens >= tokens,
            "{} of {tokens} tokens arrived",
            counter.tokens
        );
        let end = ended_at - started;
        Ok(Sample {
            first_token: first_token.unwrap_or(end),
            end,
            frames: counter.frames,
            bytes: length,
            ended_at,
        })
    }
}

impl Connection {
    async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let socket = TcpStream::connect(address)
            .await
            .with_context(|| format!("connecting to {address}"))?;
        socket.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(socket)).await?;
        let mut driver = JoinSet::new();
        driver.spawn(async {
            // The request that waits on this connection reports its failure.
            drop(connection.await);
        });
        Ok(Self {
            sender,
            _driver: driver,
        })
    }

    async fn post(
        &mut self,
        address: SocketAddr,
        path: &str,
        body: Bytes,
    ) -> anyhow::Result<Response<Incoming>> {
        self.sender.ready().await?;
        let request = Request::post(path)
            .header(header::HOST, address.to_string())
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body))?;
        let response = self.sender.send_request(request).await?;
        let status = response.status();
        if !status.is_success() {
            let text = axum::body::to_bytes(Body::new(response.into_body()), 4096)
                .await
                .unwrap_or_default();
            bail!("POST {path}: {status} {}", String::from_utf8_lossy(&text));
        }
        Ok(response)
    }
}

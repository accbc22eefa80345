//! Many viewers of one run: their cost while the run is idle, and their effect on an active run.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use deerflow_tests::process;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::provider;

/// Number of viewers of an idle run.
const IDLE_VIEWERS: usize = 10_000;
/// Number of viewers of an active run.
const ACTIVE_VIEWERS: usize = 2_000;
/// Output of the watched run: number of tokens and their interval.
const OUTPUT: (usize, Duration) = (200, Duration::from_millis(20));
/// Number of connections that are opened concurrently.
const CONCURRENT_CONNECTS: usize = 200;

/// Costs of viewers.
#[derive(Debug)]
pub(super) struct ViewerFigures {
    /// Bytes of resident memory per idle viewer.
    each: u64,
    /// Duration of the run without viewers.
    alone: Duration,
    /// Duration of the run with viewers.
    watched: Duration,
}

impl fmt::Display for ViewerFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kibibytes = self.each / 1024;
        writeln!(
            f,
            "- {IDLE_VIEWERS} idle viewers of one run: {kibibytes} KiB of resident memory each"
        )?;
        let (tokens, gap) = OUTPUT;
        write!(
            f,
            "- a run of {tokens} tokens every {} ms took ",
            gap.as_millis()
        )?;
        writeln!(
            f,
            "{:.2?} alone and {:.2?} with {ACTIVE_VIEWERS} viewers",
            self.alone, self.watched
        )
    }
}

/// Measures a gateway without other load.
pub(super) async fn measure(address: SocketAddr, pid: u32) -> anyhow::Result<ViewerFigures> {
    let gateway = Gateway {
        address,
        client: reqwest::Client::builder().no_proxy().build()?,
    };
    let alone = gateway.watched_by(0).await?;
    let watched = gateway.watched_by(ACTIVE_VIEWERS).await?;
    let (thread, run) = gateway.start(2, Duration::from_secs(3_600)).await?;
    let before = process::resident(pid)?;
    let viewers = gateway.view(&thread, &run, IDLE_VIEWERS).await?;
    let each = process::resident(pid)?.saturating_sub(before) / viewers.len() as u64;
    gateway
        .ask(
            Method::POST,
            &format!("/threads/{thread}/runs/{run}/cancel?wait=true"),
            &json!({}),
        )
        .await?;
    Ok(ViewerFigures {
        each,
        alone,
        watched,
    })
}

struct Gateway {
    address: SocketAddr,
    client: reqwest::Client,
}

impl Gateway {
    async fn ask(&self, method: Method, path: &str, body: &Value) -> anyhow::Result<Value> {
        let request = self
            .client
            .request(method, format!("http://{}/api{path}", self.address))
            .json(body);
        let answer = request.send().await?.error_for_status()?;
        let text = answer.text().await?;
        Ok(if text.is_empty() {
            Value::Null
        } else {
            serde_json::from_str(&text)?
        })
    }

    /// Starts a run on a new thread.
    async fn start(&self, tokens: usize, gap: Duration) -> anyhow::Result<(String, String)> {
        let id = |made: &Value, key: &str| made[key].as_str().map(str::to_owned).context("an id");
        let thread = id(
            &self.ask(Method::POST, "/threads", &json!({})).await?,
            "thread_id",
        )?;
        let message = json!({"type": "human", "content": provider::prompt(tokens, gap)});
        let body = json!({"assistant_id": "lead_agent", "input": {"messages": [message]}, "stream_mode": ["messages-tuple"]});
        let run = id(
            &self
                .ask(Method::POST, &format!("/threads/{thread}/runs"), &body)
                .await?,
            "run_id",
        )?;
        Ok((thread, run))
    }

    /// Returns the duration of a run that this many viewers watch to its end.
    async fn watched_by(&self, viewers: usize) -> anyhow::Result<Duration> {
        let started = Instant::now();
        let (tokens, gap) = OUTPUT;
        let (thread, run) = self.start(tokens, gap).await?;
        let mut watching = JoinSet::new();
        for mut viewer in self.view(&thread, &run, viewers).await? {
            watching
                .spawn(async move { tokio::io::copy(&mut viewer, &mut tokio::io::sink()).await });
        }
        self.ask(
            Method::GET,
            &format!("/threads/{thread}/runs/{run}/join"),
            &json!({}),
        )
        .await?;
        let took = started.elapsed();
        watching.shutdown().await;
        Ok(took)
    }

    /// Opens connections that have each received the beginning of the run's stream.
    async fn view(
        &self,
        thread: &str,
        run: &str,
        viewers: usize,
    ) -> anyhow::Result<Vec<TcpStream>> {
        let request = format!(
            "GET /api/threads/{thread}/runs/{run}/stream HTTP/1.1\r\nhost: {}\r\n\r\n",
            self.address
        );
        let (mut opening, mut open) = (JoinSet::new(), Vec::new());
        for _ in 0..viewers {
            if opening.len() == CONCURRENT_CONNECTS {
                open.extend(opening.join_next().await.transpose()?.transpose()?);
            }
            opening.spawn(view(self.address, request.clone()));
        }
        while let Some(viewer) = opening.join_next().await {
            open.push(viewer??);
        }
        Ok(open)
    }
}

async fn view(address: SocketAddr, request: String) -> anyhow::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut head = [0; 512];
    let read = stream.read(&mut head).await?;
    let head = String::from_utf8_lossy(&head[..read]);
    anyhow::ensure!(head.starts_with("HTTP/1.1 200"), "a viewer received {head}");
    Ok(stream)
}

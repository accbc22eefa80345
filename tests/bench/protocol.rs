//! Streaming protocol: many readers of one thread, and the cost of a fragment against the classic
//! stream.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use deerflow_tests::process;
use deerflow_tests::spread::Spread;
use futures_util::StreamExt as _;
use harness::clock::{Clock, SystemClock};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

use super::frames::FrameCounter;
use super::provider;

/// Number of streams of one thread; one of them is never read.
const READERS: usize = 200;
/// Number of runs that they read.
const RUNS: usize = 5;
/// Output of each of these runs: number of tokens and their interval.
const OUTPUT: (usize, Duration) = (100, Duration::from_millis(50));
/// Number of concurrent streams, each of an own thread, and of tokens of each, whose cost is
/// measured.
const STREAMS: usize = 8;
const TOKENS: usize = 2_000;
/// Number of measurements of each kind, in turn.
const ROUNDS: u32 = 8;
/// Modes that runs of the protocol have.
const MODES: [&str; 6] = [
    "values",
    "updates",
    "messages-tuple",
    "custom",
    "tasks",
    "checkpoints",
];

/// Costs of the streaming protocol.
#[derive(Debug)]
pub(super) struct ProtocolFigures {
    /// Time between the conversion of an event and its arrival.
    delay: Spread,
    /// Resident memory after the first and the last run.
    resident: [u64; 2],
    /// CPU time per token of classic streams and of protocol streams.
    cpu: [Duration; 2],
}

impl fmt::Display for ProtocolFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, last] = self.resident.map(|bytes| bytes / 1024 / 1024);
        let [classic, protocol] = self.cpu.map(|cpu| cpu.as_secs_f64() * 1e6);
        writeln!(
            f,
            "- {READERS} protocol streams of one thread, one never read: delay of the others {}; \
             resident {first} MiB after the first run, {last} MiB after run {RUNS}",
            self.delay
        )?;
        writeln!(
            f,
            "- CPU per token: {classic:.1} µs in a classic stream, {protocol:.1} µs in a protocol stream ({:.2})",
            protocol / classic
        )
    }
}

/// Measures a gateway without other load.
pub(super) async fn measure(address: SocketAddr, pid: u32) -> anyhow::Result<ProtocolFigures> {
    let gateway = Gateway {
        address,
        client: reqwest::Client::builder().no_proxy().build()?,
    };
    let mut cpu = [Duration::ZERO; 2];
    for round in 0..=ROUNDS {
        let classic = gateway.cost(pid, Kind::Classic).await?;
        let protocol = gateway.cost(pid, Kind::Protocol).await?;
        // The first streams pay for what is allocated once.
        if round > 0 {
            cpu = [cpu[0] + classic, cpu[1] + protocol];
        }
    }
    let cpu = cpu.map(|sum| sum / ROUNDS);
    let (delay, resident) = gateway.readers(pid).await?;
    Ok(ProtocolFigures {
        delay,
        resident,
        cpu,
    })
}

/// API of a stream.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Classic,
    Protocol,
}

#[derive(Clone)]
struct Gateway {
    address: SocketAddr,
    client: reqwest::Client,
}

impl Gateway {
    async fn post(&self, path: &str, body: &Value) -> anyhow::Result<reqwest::Response> {
        let url = format!("http://{}{path}", self.address);
        Ok(self
            .client
            .post(url)
            .json(body)
            .send()
            .await?
            .error_for_status()?)
    }

    async fn thread(&self) -> anyhow::Result<String> {
        let created: Value = self.post("/threads", &json!({})).await?.json().await?;
        let id = created["thread_id"].as_str();
        id.map(str::to_owned).context("no thread id")
    }

    /// Starts a run and returns its id.
    async fn start(&self, thread: &str, tokens: usize, gap: Duration) -> anyhow::Result<String> {
        let message = json!({ "type": "human", "content": provider::prompt(tokens, gap) });
        let params = json!({ "assistant_id": "lead_agent", "input": { "messages": [message] } });
        let command = json!({ "id": 1, "method": "run.start", "params": params });
        let path = format!("/threads/{thread}/commands");
        let answer: Value = self.post(&path, &command).await?.json().await?;
        let run = answer["result"]["run_id"].as_str();
        run.map(str::to_owned)
            .with_context(|| format!("refused: {answer}"))
    }

    /// Returns the CPU time of the gateway per token of concurrent streams.
    async fn cost(&self, pid: u32, kind: Kind) -> anyhow::Result<Duration> {
        let before = process::cpu_time(pid)?;
        let mut streams = JoinSet::new();
        for _ in 0..STREAMS {
            let gateway = self.clone();
            streams.spawn(async move {
                match kind {
                    Kind::Classic => gateway.classic_stream().await,
                    Kind::Protocol => gateway.protocol_stream().await,
                }
            });
        }
        while let Some(read) = streams.join_next().await {
            let tokens = read??;
            anyhow::ensure!(tokens >= TOKENS, "{tokens} of {TOKENS} tokens arrived");
        }
        let cpu = process::cpu_time(pid)?.saturating_sub(before);
        Ok(cpu / u32::try_from(STREAMS * TOKENS)?)
    }

    async fn classic_stream(&self) -> anyhow::Result<usize> {
        let thread = self.thread().await?;
        let message =
            json!({ "type": "human", "content": provider::prompt(TOKENS, Duration::ZERO) });
        let body = json!({
            "assistant_id": "lead_agent",
            "input": { "messages": [message] },
            "stream_mode": MODES,
            "stream_subgraphs": true,
            "stream_resumable": true,
        });
        let path = format!("/threads/{thread}/runs/stream");
        let mut bytes = self.post(&path, &body).await?.bytes_stream();
        let mut counter = FrameCounter::default();
        while let Some(chunk) = bytes.next().await {
            counter.push(&chunk?);
        }
        Ok(usize::try_from(counter.tokens)?)
    }

    async fn protocol_stream(&self) -> anyhow::Result<usize> {
        let thread = self.thread().await?;
        let stream = self.open(&thread).await?;
        self.start(&thread, TOKENS, Duration::ZERO).await?;
        Ok(read(stream, 1).await?.len())
    }

    /// Opens a stream of a thread.
    async fn open(&self, thread: &str) -> anyhow::Result<reqwest::Response> {
        self.post(&format!("/threads/{thread}/stream/events"), &channels())
            .await
    }

    /// Opens a stream of a thread that is not read beyond its head.
    async fn open_unread(&self, thread: &str) -> anyhow::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(4 * 1024)?;
        let mut stream = socket.connect(self.address).await?;
        let body = channels().to_string();
        let request = format!(
            "POST /threads/{thread}/stream/events HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            body.len(),
        );
        stream.write_all(request.as_bytes()).await?;
        let mut head = [0; 12];
        stream.read_exact(&mut head).await?;
        anyhow::ensure!(head == *b"HTTP/1.1 200", "the unread stream was refused");
        Ok(stream)
    }

    /// Lets many streams read the runs of one thread. Returns their delays, and the resident memory
    /// after the first and the last run.
    async fn readers(&self, pid: u32) -> anyhow::Result<(Spread, [u64; 2])> {
        let thread = self.thread().await?;
        let _unread = self.open_unread(&thread).await?;
        let mut readers = JoinSet::new();
        for _ in 1..READERS {
            let stream = self.open(&thread).await?;
            readers.spawn(read(stream, RUNS));
        }
        let mut resident = Vec::new();
        for _ in 0..RUNS {
            let run = self.start(&thread, OUTPUT.0, OUTPUT.1).await?;
            let url = format!("http://{}/threads/{thread}/runs/{run}/join", self.address);
            self.client
                .get(url)
                .send()
                .await?
                .error_for_status()?
                .bytes()
                .await?;
            resident.push(process::resident(pid)?);
        }
        let mut delays = Vec::new();
        while let Some(read) = readers.join_next().await {
            let read = read??;
            let expected = RUNS * OUTPUT.0;
            anyhow::ensure!(
                read.len() == expected,
                "a stream got {} of {expected} tokens",
                read.len()
            );
            delays.extend(read);
        }
        Ok((Spread::of(delays), [resident[0], resident[RUNS - 1]]))
    }
}

fn channels() -> Value {
    json!({ "channels": ["values", "updates", "messages", "tools", "lifecycle", "input", "checkpoints", "custom"] })
}

/// Reads a stream until `runs` runs have ended, and returns the delay of each token.
async fn read(response: reqwest::Response, runs: usize) -> anyhow::Result<Vec<Duration>> {
    let (mut bytes, mut rest) = (response.bytes_stream(), Vec::new());
    let (mut delays, mut ended) = (Vec::new(), 0);
    while ended < runs {
        rest.extend_from_slice(&bytes.next().await.context("the stream ended")??);
        let now = SystemClock.now().timestamp_millis();
        while let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(&rest[..at]);
            if line.contains(r#""content-block-delta""#) {
                delays.push(delay_of(&line, now)?);
            }
            ended += usize::from(line.contains(r#""event":"completed""#));
            rest.drain(..=at);
        }
    }
    Ok(delays)
}

/// Returns the time since the timestamp of an event, both in milliseconds.
fn delay_of(event: &str, now: i64) -> anyhow::Result<Duration> {
    let (_, stamp) = event
        .split_once(r#""timestamp":"#)
        .context("no timestamp")?;
    let digits = stamp.split(|letter: char| !letter.is_ascii_digit()).next();
    let stamp: i64 = digits.unwrap_or_default().parse()?;
    Ok(Duration::from_millis(
        u64::try_from(now - stamp).unwrap_or_default(),
    ))
}

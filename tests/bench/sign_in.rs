//! Costs of sign-in: for each request, `/me`, runs, and streams while many people sign in.

use std::fmt;
use std::time::Duration;

use anyhow::Context as _;
use deerflow_tests::process;
use deerflow_tests::spread::Spread;
use futures_util::StreamExt as _;
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::frames::FrameCounter;
use super::provider;
use super::subject::Subject;

/// Number of measurements of each kind, in turn without accounts and with a session, so that both
/// have the same load of the machine and databases of the same size.
const ROUNDS: usize = 10;
/// Number of requests, and of runs, per measurement.
const REQUESTS: usize = 200;
const RUNS: usize = 50;
/// Number of concurrent logins, and of streams that they may delay.
const LOGINS: usize = 64;
const STREAMS: usize = 200;
/// Output of each stream: number of tokens and their interval.
const OUTPUT: (usize, Duration) = (160, Duration::from_millis(50));
/// Time after the start of the streams at which the logins begin.
const LOGINS_AFTER: Duration = Duration::from_secs(2);

const EMAIL: &str = "root@example.org";
const PASSWORD: &str = "a quiet brown deer";

/// Costs of sign-in.
#[derive(Debug)]
pub(super) struct SignInFigures {
    /// A small request before there is an account, and with a session.
    request: [Spread; 2],
    /// `GET /api/v1/auth/me` with a session.
    me: Spread,
    /// A run of one token before there is an account, and with a session.
    run: [RunCost; 2],
    /// Intervals between tokens of the streams alone, and while people sign in.
    gap: [Spread; 2],
    /// Duration of all logins.
    logins: Duration,
    /// `setup-status` and `/me` during the logins.
    while_full: [Spread; 2],
}

/// Cost of a run.
#[derive(Debug, Clone, Copy)]
struct RunCost {
    time: Spread,
    cpu: Duration,
}

/// Times of runs, and their CPU time in the gateway.
#[derive(Debug, Default)]
struct Runs {
    times: Vec<Duration>,
    cpu: Duration,
}

impl Runs {
    fn add(&mut self, more: Self) {
        self.times.extend(more.times);
        self.cpu += more.cpu;
    }
}

impl RunCost {
    fn of(runs: Runs) -> Self {
        let count = u32::try_from(runs.times.len()).unwrap_or(u32::MAX).max(1);
        Self {
            cpu: runs.cpu / count,
            time: Spread::of(runs.times),
        }
    }
}

impl fmt::Display for SignInFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        let [open, signed_in] = self.request;
        writeln!(
            f,
            "- a small request: p50 {:.0} µs without accounts, {:.0} µs with a session",
            micros(open.p50),
            micros(signed_in.p50)
        )?;
        writeln!(
            f,
            "- `/me` with a session: p50 {:.0} µs",
            micros(self.me.p50)
        )?;
        let [open, signed_in] = self.run;
        writeln!(
            f,
            "- a run of one token: p50 {:.0} µs and {:.0} µs of CPU without accounts, {:.0} µs and {:.0} µs with a session",
            micros(open.time.p50),
            micros(open.cpu),
            micros(signed_in.time.p50),
            micros(signed_in.cpu)
        )?;
        let [alone, during_logins] = self.gap;
        writeln!(
            f,
            "- intervals between tokens of {STREAMS} streams: {alone}; while {LOGINS} people sign in, which took {:.2?}: {during_logins}",
            self.logins
        )?;
        let [status, me] = self.while_full;
        writeln!(
            f,
            "- during these logins: `setup-status` {status}; `/me` {me}"
        )
    }
}

/// Measures two gateways without accounts, and creates one in the second.
pub(super) async fn measure(open: &Subject, closed: &Subject) -> anyhow::Result<SignInFigures> {
    let (open_pid, closed_pid) = (open.pid()?, closed.pid()?);
    let (open, mut signed_in) = (Gateway::new(open)?, Gateway::new(closed)?);
    signed_in.initialize().await?;
    let (mut requests, mut runs) = <([Vec<Duration>; 2], [Runs; 2])>::default();
    let mut me = Vec::new();
    // The first round pays for what is allocated once.
    for round in 0..=ROUNDS {
        let measured = [
            (
                open.times("/api/features").await?,
                open.runs(open_pid).await?,
            ),
            (
                signed_in.times("/api/features").await?,
                signed_in.runs(closed_pid).await?,
            ),
        ];
        let own = signed_in.times("/api/v1/auth/me").await?;
        if round > 0 {
            for (side, (times, cost)) in measured.into_iter().enumerate() {
                requests[side].extend(times);
                runs[side].add(cost);
            }
            me.extend(own);
        }
    }
    let alone = signed_in.streams().await?;
    let (gaps, logins) = tokio::join!(signed_in.streams(), signed_in.logins());
    let (logins, while_full) = logins?;
    Ok(SignInFigures {
        request: requests.map(Spread::of),
        me: Spread::of(me),
        run: runs.map(RunCost::of),
        gap: [alone, gaps?],
        logins,
        while_full,
    })
}

#[derive(Clone)]
struct Gateway {
    base_url: String,
    client: reqwest::Client,
    session: Option<Session>,
}

/// Cookies of a session, and the token that writes repeat.
#[derive(Clone)]
struct Session {
    cookies: String,
    csrf: String,
}

impl Gateway {
    fn new(subject: &Subject) -> anyhow::Result<Self> {
        Ok(Self {
            base_url: format!("http://{}", subject.address()),
            client: reqwest::Client::builder().no_proxy().build()?,
            session: None,
        })
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        // Without `Origin`: streams of pages begin with a pause, which would hide the costs.
        let request = self
            .client
            .request(method, format!("{}{path}", self.base_url));
        match &self.session {
            Some(session) => request
                .header("cookie", &session.cookies)
                .header("x-csrf-token", &session.csrf),
            None => request,
        }
    }

    async fn get(&self, path: &str) -> anyhow::Result<Duration> {
        let started = Instant::now();
        let response = self.request(Method::GET, path).send().await?;
        response.error_for_status()?.bytes().await?;
        Ok(started.elapsed())
    }

    async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Response> {
        let response = self.request(Method::POST, path).json(body).send().await?;
        Ok(response.error_for_status()?)
    }

    /// Measures sequential requests.
    async fn times(&self, path: &str) -> anyhow::Result<Vec<Duration>> {
        let mut times = Vec::with_capacity(REQUESTS);
        for _ in 0..REQUESTS {
            times.push(self.get(path).await?);
        }
        Ok(times)
    }

    /// Creates the first administrator and acts as them from now on.
    async fn initialize(&mut self) -> anyhow::Result<()> {
        let body = json!({ "email": EMAIL, "password": PASSWORD });
        let response = self.post("/api/v1/auth/initialize", &body).await?;
        let mut cookies = Vec::new();
        for cookie in response.headers().get_all("set-cookie") {
            let pair = cookie.to_str()?.split(';').next().unwrap_or_default();
            cookies.push(pair.to_owned());
        }
        let csrf = cookies
            .iter()
            .find_map(|pair| pair.strip_prefix("csrf_token="))
            .context("no CSRF token")?
            .to_owned();
        self.session = Some(Session {
            cookies: cookies.join("; "),
            csrf,
        });
        Ok(())
    }

    /// Streams a run on a new thread and returns the times at which tokens arrived.
    async fn stream(&self, tokens: usize, gap: Duration) -> anyhow::Result<Vec<Instant>> {
        let thread: Value = self.post("/api/threads", &json!({})).await?.json().await?;
        let thread = thread["thread_id"].as_str().context("no thread id")?;
        let message = json!({ "type": "human", "content": provider::prompt(tokens, gap) });
        let body = json!({
            "assistant_id": "lead_agent",
            "input": { "messages": [message] },
            "stream_mode": ["messages-tuple"],
        });
        let path = format!("/api/threads/{thread}/runs/stream");
        let mut bytes = self.post(&path, &body).await?.bytes_stream();
        let (mut counter, mut arrivals) = (FrameCounter::default(), Vec::new());
        while let Some(chunk) = bytes.next().await {
            counter.push(&chunk?);
            let count = usize::try_from(counter.tokens)?;
            arrivals.resize_with(count.max(arrivals.len()), Instant::now);
        }
        anyhow::ensure!(
            arrivals.len() >= tokens && counter.ended,
            "{} of {tokens} tokens arrived",
            arrivals.len()
        );
        Ok(arrivals)
    }

    /// Measures sequential runs of one token, each with its thread.
    async fn runs(&self, pid: u32) -> anyhow::Result<Runs> {
        let before = process::cpu_time(pid)?;
        let mut times = Vec::with_capacity(RUNS);
        for _ in 0..RUNS {
            let started = Instant::now();
            self.stream(1, Duration::ZERO).await?;
            times.push(started.elapsed());
        }
        let cpu = process::cpu_time(pid)?.saturating_sub(before);
        Ok(Runs { times, cpu })
    }

    /// Measures the intervals between the tokens of concurrent streams.
    async fn streams(&self) -> anyhow::Result<Spread> {
        let mut streams = JoinSet::new();
        for _ in 0..STREAMS {
            let gateway = self.clone();
            streams.spawn(async move { gateway.stream(OUTPUT.0, OUTPUT.1).await });
        }
        let mut gaps = Vec::new();
        while let Some(arrivals) = streams.join_next().await {
            let arrivals = arrivals??;
            gaps.extend(arrivals.windows(2).map(|pair| pair[1] - pair[0]));
        }
        Ok(Spread::of(gaps))
    }

    /// Signs in concurrently. Returns the duration, and the times of `setup-status` and `/me`
    /// meanwhile.
    async fn logins(&self) -> anyhow::Result<(Duration, [Spread; 2])> {
        tokio::time::sleep(LOGINS_AFTER).await;
        let started = Instant::now();
        let mut logins = JoinSet::new();
        for _ in 0..LOGINS {
            let gateway = Self {
                session: None,
                ..self.clone()
            };
            logins.spawn(async move { gateway.log_in().await });
        }
        let (mut status, mut me) = (Vec::new(), Vec::new());
        while !logins.is_empty() {
            status.push(self.get("/api/v1/auth/setup-status").await?);
            me.push(self.get("/api/v1/auth/me").await?);
            while let Some(login) = logins.try_join_next() {
                login??;
            }
        }
        Ok((started.elapsed(), [Spread::of(status), Spread::of(me)]))
    }

    /// Signs in once. A response 503 states that all slots for password hashes are taken: the login
    /// is repeated.
    async fn log_in(&self) -> anyhow::Result<()> {
        loop {
            let form = [("username", EMAIL), ("password", PASSWORD)];
            let response = self
                .request(Method::POST, "/api/v1/auth/login/local")
                .form(&form)
                .send()
                .await?;
            if response.status() != reqwest::StatusCode::SERVICE_UNAVAILABLE {
                response.error_for_status()?;
                return Ok(());
            }
        }
    }
}

//! Calls webhooks from the outbox until they are taken or given up. Nothing here can touch a run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use harness::clock::{Clock, iso};
use harness::ids::RunId;
use harness::net::{GuardedClient, SystemLookup};
use harness::runtime::fail_points;
use harness::runtime::runs::store::{StoreError, WebhookDelivery, WebhookOutbox};
use harness::runtime::tasks::{TaskKind, Tasks};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, StatusCode};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::WebhookPolicy;
use super::hosts::{Hosts, NoPlace, Receiver};
use super::signature::{self, SigningKey};
use crate::dialect::Dialect;
use crate::wire::run_json;

/// How calls are made.
#[derive(Debug, Clone)]
pub struct SenderOptions {
    /// Which addresses may be called.
    pub policy: WebhookPolicy,
    /// What calls are signed with; without it they are not.
    pub key: Option<SigningKey>,
    /// How often to look for calls that are due.
    pub look: Duration,
    /// How long a receiver may take.
    pub patience: Duration,
    /// The waits after failures, give or take a tenth. When they are used up, a call is a dead letter.
    pub waits: Vec<Duration>,
}

impl Default for SenderOptions {
    fn default() -> Self {
        Self {
            policy: WebhookPolicy::default(),
            key: None,
            look: Duration::from_secs(1),
            patience: Duration::from_secs(10),
            waits: [5, 30, 120, 600, 1_800, 3_600, 10_800, 21_600, 43_200]
                .map(Duration::from_secs)
                .to_vec(),
        }
    }
}

/// How many calls are under way, or wait for their host, at once.
const AT_ONCE: usize = 128;
/// How many calls are taken from the outbox at once.
const TAKEN: usize = 32;
/// How much is read of what a receiver says, in bytes.
const LONGEST_ANSWER: usize = 4 * 1024;

/// The service that empties the outbox.
#[derive(Debug, Clone)]
pub struct WebhookSender {
    outbox: Arc<dyn WebhookOutbox>,
    clock: Arc<dyn Clock>,
    client: GuardedClient,
    options: SenderOptions,
}

/// Why a call was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum NotTaken {
    /// The receiver does not work now: it cannot be reached, fails, or has too much to do.
    #[error("{0}")]
    Down(String),
    /// The receiver works and refused; a later try may succeed.
    #[error("{0}")]
    Yet(String),
    /// No later try can.
    #[error("{0}")]
    Ever(String),
}

impl WebhookSender {
    /// A sender over `outbox`.
    pub fn new(
        outbox: Arc<dyn WebhookOutbox>,
        clock: Arc<dyn Clock>,
        options: SenderOptions,
    ) -> reqwest::Result<Self> {
        let client = GuardedClient::new(
            options.policy.egress(),
            Arc::new(SystemLookup::default()),
            |client| {
                client
                    .timeout(options.patience)
                    .user_agent(concat!("deerflow/", env!("CARGO_PKG_VERSION")))
            },
        )?;
        Ok(Self {
            outbox,
            clock,
            client,
            options,
        })
    }

    /// Sends until `tasks` shuts down.
    pub fn start(self, tasks: &Tasks) {
        let stop = tasks.token().clone();
        tasks.spawn(TaskKind::Service, "webhook sender", async move {
            // Cut short by shutdown: a call that was not confirmed is sent again after its lease.
            let _stopped = stop.run_until_cancelled(self.serve()).await;
        });
    }

    /// Looks for calls that are due, again and again. No receiver keeps another's calls waiting.
    async fn serve(&self) {
        let mut hosts = Hosts::default();
        let mut under_way = FuturesUnordered::new();
        let mut next_look = Instant::now();
        loop {
            let room = under_way.len() + TAKEN <= AT_ONCE;
            tokio::select! {
                Some(left) = under_way.next() => {
                    let (receiver, works): (Receiver, Option<bool>) = left;
                    hosts.leave(&receiver, works, self.clock.now());
                }
                () = tokio::time::sleep_until(next_look), if room => {
                    next_look = Instant::now() + self.options.look;
                    match self.take(&mut hosts).await {
                        Ok((calls, all)) => {
                            under_way.extend(calls.into_iter().map(|(call, turns)| self.in_its_turn(call, turns)));
                            if !all {
                                next_look = Instant::now();
                            }
                        }
                        Err(error) => tracing::warn!(%error, "the outbox of webhooks cannot be read"),
                    }
                }
            }
        }
    }

    /// Sends what is due now, until all of it was tried, and says how much that was.
    pub async fn send_due(&self) -> Result<usize, StoreError> {
        let (calls, _) = self.take(&mut Hosts::default()).await?;
        let sending: FuturesUnordered<_> = calls
            .into_iter()
            .map(|(call, turns)| self.in_its_turn(call, turns))
            .collect();
        Ok(sending.count().await)
    }

    /// Takes calls that are due and whose hosts have a place for them, and says whether those were all. A rest counts as a try, so
    /// that the calls of a host that is gone come back more and more seldom and end when they would have ended anyway.
    async fn take(
        &self,
        hosts: &mut Hosts,
    ) -> Result<(Vec<(WebhookDelivery, Arc<Semaphore>)>, bool), StoreError> {
        let now = self.clock.now();
        // One patience for the turn, one for the call, and some for the store.
        let lease = self.options.patience * 2 + Duration::from_secs(30);
        let due = self
            .outbox
            .due(
                now,
                now + TimeDelta::from_std(lease).unwrap_or_default(),
                TAKEN,
            )
            .await?;
        let all = due.len() < TAKEN;
        let mut taken = Vec::with_capacity(due.len());
        let mut busy: BTreeMap<DateTime<Utc>, Vec<RunId>> = BTreeMap::new();
        let mut resting: BTreeMap<Option<DateTime<Utc>>, Vec<RunId>> = BTreeMap::new();
        for call in due {
            match hosts.admit(&receiver_of(&call), now) {
                Ok(turns) => taken.push((call, turns)),
                Err(NoPlace::Busy(until)) => busy.entry(until).or_default().push(call.run.run_id),
                Err(NoPlace::Rests(until)) => {
                    let again = self
                        .wait_of(&call)
                        .and_then(|wait| TimeDelta::from_std(wait).ok())
                        .map(|wait| until.max(now + wait));
                    resting.entry(again).or_default().push(call.run.run_id);
                }
            }
        }
        for (until, runs) in busy {
            self.outbox.put_back(&runs, until).await?;
        }
        for (again, runs) in resting {
            tracing::debug!(
                calls = runs.len(),
                given_up = again.is_none(),
                "webhooks wait for a receiver that rests"
            );
            self.outbox
                .failed(
                    &runs,
                    "the receiver rests: it failed too often in a row",
                    again,
                    now,
                )
                .await?;
        }
        Ok((taken, all))
    }

    /// Makes a call when it is its turn at its host, and says whether it was taken; nothing if its turn never came: then it is due
    /// again when its lease is over.
    async fn in_its_turn(
        &self,
        call: WebhookDelivery,
        turns: Arc<Semaphore>,
    ) -> (Receiver, Option<bool>) {
        let receiver = receiver_of(&call);
        match tokio::time::timeout(self.options.patience, turns.acquire()).await {
            Ok(Ok(_turn)) => (receiver, self.deliver(call).await),
            _ => (receiver, None),
        }
    }

    /// Makes a call and stores what became of it. Says whether the receiver works, if that could be found out.
    async fn deliver(&self, call: WebhookDelivery) -> Option<bool> {
        let run = &call.run.run_id;
        fail_points::pass("webhook.leased");
        let sent = self.send(&call).await;
        fail_points::pass("webhook.sent");
        let written = match &sent {
            Ok(()) => self.outbox.delivered(run).await,
            Err(error) => {
                let again = self
                    .wait_after(&call)
                    .filter(|_| !matches!(error, NotTaken::Ever(_)));
                tracing::warn!(run_id = %run, %error, tries = call.tries + 1, given_up = again.is_none(), "a webhook was not taken");
                let now = self.clock.now();
                self.outbox
                    .failed(
                        std::slice::from_ref(run),
                        &error.to_string(),
                        again.map(|wait| now + wait),
                        now,
                    )
                    .await
            }
        };
        fail_points::pass("webhook.written");
        if let Err(error) = written {
            tracing::warn!(run_id = %run, %error, "what became of a webhook cannot be stored; it is sent again");
        }
        match sent {
            Ok(()) | Err(NotTaken::Yet(_)) => Some(true),
            Err(NotTaken::Down(_)) => Some(false),
            Err(NotTaken::Ever(_)) => None,
        }
    }

    /// How long to wait after the next failure of a call, if it is not the last. Calls that fail together come back apart.
    fn wait_after(&self, call: &WebhookDelivery) -> Option<TimeDelta> {
        let wait = self.wait_of(call)?;
        let [dice, ..] = <[u8; 32]>::from(Sha256::digest(format!(
            "{} {}",
            call.run.run_id, call.tries
        )));
        TimeDelta::from_std(wait.mul_f64(0.9 + 0.2 * f64::from(dice) / 255.0)).ok()
    }

    fn wait_of(&self, call: &WebhookDelivery) -> Option<Duration> {
        self.options
            .waits
            .get(usize::try_from(call.tries).ok()?)
            .copied()
    }

    async fn send(&self, call: &WebhookDelivery) -> Result<(), NotTaken> {
        let url = self
            .options
            .policy
            .read(&call.call.url)
            .map_err(|forbidden| NotTaken::Ever(forbidden.to_string()))?;
        let (now, id) = (self.clock.now(), call.run.run_id.as_str());
        let body = body_of(call, &iso(now)).to_string();
        let mut request = self
            .client
            .request(Method::POST, url)
            .map_err(|forbidden| NotTaken::Ever(forbidden.to_string()))?
            .header(CONTENT_TYPE, "application/json")
            .header(signature::ID, id)
            .header(signature::TIMESTAMP, now.timestamp())
            .header(signature::ATTEMPT, call.tries + 1);
        if let Some(key) = &self.options.key {
            request = request.header(
                signature::SIGNATURE,
                key.sign(id, now.timestamp(), body.as_bytes()),
            );
        }
        let mut answer = request
            .body(body)
            .send()
            .await
            .map_err(|error| NotTaken::Down(causes(&error)))?;
        let status = answer.status();
        // Read so far, a connection can be used again; what is longer closes it.
        let mut read = 0;
        while let Ok(Some(piece)) = answer.chunk().await {
            read += piece.len();
            if read > LONGEST_ANSWER {
                break;
            }
        }
        match status {
            status if status.is_success() => Ok(()),
            StatusCode::GONE => Err(NotTaken::Ever("the receiver is gone".to_owned())),
            status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                Err(NotTaken::Down(answered(status)))
            }
            status => Err(NotTaken::Yet(answered(status))),
        }
    }
}

fn answered(status: StatusCode) -> String {
    format!("the receiver answered {status}")
}

/// Who calls which host and port; an empty one if the call goes nowhere.
fn receiver_of(call: &WebhookDelivery) -> Receiver {
    let url = reqwest::Url::parse(&call.call.url).ok();
    let host = url.map(|url| {
        format!(
            "{}:{}",
            url.host_str().unwrap_or_default(),
            url.port_or_known_default().unwrap_or_default()
        )
    });
    Receiver {
        user: call.run.user_id.clone(),
        host: host.unwrap_or_default(),
    }
}

/// The run as it ended, when it did what, and what it left.
fn body_of(call: &WebhookDelivery, sent_at: &str) -> Value {
    let mut body = match run_json(&call.run, Dialect::Platform) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    body.insert(
        "run_started_at".to_owned(),
        iso(call.call.started_at).into(),
    );
    body.insert("run_ended_at".to_owned(), iso(call.ended_at).into());
    body.insert("webhook_sent_at".to_owned(), sent_at.into());
    body.insert(
        "values".to_owned(),
        call.call.values.clone().unwrap_or(Value::Null),
    );
    let error = call
        .call
        .error
        .as_ref()
        .map(|(name, message)| json!({ "error": name, "message": message }));
    body.insert("error".to_owned(), error.unwrap_or(Value::Null));
    Value::Object(body)
}

/// An error with all that caused it, without the address: it may hold a secret.
fn causes(error: &reqwest::Error) -> String {
    let mut text = if error.is_timeout() {
        "the receiver took too long".to_owned()
    } else {
        "the receiver cannot be called".to_owned()
    };
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}

#[cfg(test)]
#[path = "sender_tests.rs"]
mod tests;

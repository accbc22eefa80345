//! Delivers webhook calls from the outbox until they succeed or become dead letters. A failed
//! delivery does not affect the run.

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
use super::receiver_limits::{Receiver, ReceiverLimits, Refusal};
use super::signature::{self, SigningKey};
use crate::dialect::Dialect;
use crate::responses::RunView;

/// Settings of the delivery.
#[derive(Debug, Clone)]
pub struct SenderOptions {
    /// Policy of allowed addresses.
    pub policy: WebhookPolicy,
    /// Signing key; without it calls are not signed.
    pub key: Option<SigningKey>,
    /// Interval of polling the outbox.
    pub poll_interval: Duration,
    /// Timeout of a call, and of waiting for a permit.
    pub timeout: Duration,
    /// Delays between attempts, with a jitter of a tenth. After the last one a call becomes a dead
    /// letter.
    pub retry_delays: Vec<Duration>,
}

impl Default for SenderOptions {
    fn default() -> Self {
        Self {
            policy: WebhookPolicy::default(),
            key: None,
            poll_interval: Duration::from_secs(1),
            timeout: Duration::from_secs(10),
            retry_delays: [5, 30, 120, 600, 1_800, 3_600, 10_800, 21_600, 43_200]
                .map(Duration::from_secs)
                .to_vec(),
        }
    }
}

/// Maximum number of calls in flight or waiting for a permit.
const MAX_IN_FLIGHT: usize = 128;
/// Maximum number of calls claimed at once.
const CLAIM_BATCH: usize = 32;
/// Maximum number of bytes read from a response.
const MAX_RESPONSE_BYTES: usize = 4 * 1024;

/// Service that delivers the calls of the outbox.
#[derive(Debug, Clone)]
pub struct WebhookSender {
    outbox: Arc<dyn WebhookOutbox>,
    clock: Arc<dyn Clock>,
    client: GuardedClient,
    options: SenderOptions,
}

/// Failure of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum DeliveryError {
    /// The receiver is unreachable, fails, or is overloaded.
    #[error("{0}")]
    Unavailable(String),
    /// The receiver works and rejected the call; a retry may succeed.
    #[error("{0}")]
    Rejected(String),
    /// No retry can succeed.
    #[error("{0}")]
    Permanent(String),
}

impl WebhookSender {
    /// A sender of the calls in `outbox`.
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
                    .timeout(options.timeout)
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

    /// Delivers calls until `tasks` shuts down.
    pub fn start(self, tasks: &Tasks) {
        let stop = tasks.token().clone();
        tasks.spawn(TaskKind::Service, "webhook sender", async move {
            // Interrupted by shutdown: an unconfirmed call is sent again after its lease.
            let _stopped = stop.run_until_cancelled(self.serve()).await;
        });
    }

    /// Polls for due calls. A slow receiver does not delay the calls of others.
    async fn serve(&self) {
        let mut limits = ReceiverLimits::default();
        let mut in_flight = FuturesUnordered::new();
        let mut next_poll = Instant::now();
        loop {
            let has_capacity = in_flight.len() + CLAIM_BATCH <= MAX_IN_FLIGHT;
            tokio::select! {
                Some(finished) = in_flight.next() => {
                    let (receiver, works): (Receiver, Option<bool>) = finished;
                    limits.release(&receiver, works, self.clock.now());
                }
                () = tokio::time::sleep_until(next_poll), if has_capacity => {
                    next_poll = Instant::now() + self.options.poll_interval;
                    match self.take(&mut limits).await {
                        Ok((calls, drained)) => {
                            in_flight.extend(calls.into_iter().map(|(call, permits)| self.deliver_with_permit(call, permits)));
                            if !drained {
                                next_poll = Instant::now();
                            }
                        }
                        Err(error) => tracing::warn!(%error, "failed to read the webhook outbox"),
                    }
                }
            }
        }
    }

    /// Sends one batch of due calls, and returns their number.
    pub async fn send_due(&self) -> Result<usize, StoreError> {
        let (calls, _) = self.take(&mut ReceiverLimits::default()).await?;
        let sending: FuturesUnordered<_> = calls
            .into_iter()
            .map(|(call, permits)| self.deliver_with_permit(call, permits))
            .collect();
        Ok(sending.count().await)
    }

    /// Claims due calls of receivers that are below their limits. The flag is `true` if no further
    /// calls are due. A refusal because of a pause counts as an attempt, so that calls to a dead
    /// host are retried less and less often and finally become dead letters.
    async fn take(
        &self,
        limits: &mut ReceiverLimits,
    ) -> Result<(Vec<(WebhookDelivery, Arc<Semaphore>)>, bool), StoreError> {
        let now = self.clock.now();
        // One timeout for the permit, one for the call, and some time for the store.
        let lease = self.options.timeout * 2 + Duration::from_secs(30);
        let due = self
            .outbox
            .due(
                now,
                now + TimeDelta::from_std(lease).unwrap_or_default(),
                CLAIM_BATCH,
            )
            .await?;
        let drained = due.len() < CLAIM_BATCH;
        let mut claimed = Vec::with_capacity(due.len());
        let mut busy: BTreeMap<DateTime<Utc>, Vec<RunId>> = BTreeMap::new();
        let mut paused: BTreeMap<Option<DateTime<Utc>>, Vec<RunId>> = BTreeMap::new();
        for call in due {
            match limits.reserve(&receiver_of(&call), now) {
                Ok(permits) => claimed.push((call, permits)),
                Err(Refusal::Busy(until)) => busy.entry(until).or_default().push(call.run.run_id),
                Err(Refusal::Paused(until)) => {
                    let retry_at = self
                        .retry_delay(&call)
                        .and_then(|wait| TimeDelta::from_std(wait).ok())
                        .map(|wait| until.max(now + wait));
                    paused.entry(retry_at).or_default().push(call.run.run_id);
                }
            }
        }
        for (until, runs) in busy {
            self.outbox.put_back(&runs, until).await?;
        }
        for (retry_at, runs) in paused {
            tracing::debug!(
                calls = runs.len(),
                given_up = retry_at.is_none(),
                "delayed webhooks of a paused receiver"
            );
            self.outbox
                .failed(
                    &runs,
                    "the receiver is paused after repeated failures",
                    retry_at,
                    now,
                )
                .await?;
        }
        Ok((claimed, drained))
    }

    /// Makes a call once it has a permit, and returns whether the receiver works. Without a permit
    /// in time it returns `None`, and the call is due again when its lease expires.
    async fn deliver_with_permit(
        &self,
        call: WebhookDelivery,
        permits: Arc<Semaphore>,
    ) -> (Receiver, Option<bool>) {
        let receiver = receiver_of(&call);
        match tokio::time::timeout(self.options.timeout, permits.acquire()).await {
            Ok(Ok(_turn)) => (receiver, self.deliver(call).await),
            _ => (receiver, None),
        }
    }

    /// Makes a call and stores the outcome. Returns whether the receiver works, if known.
    async fn deliver(&self, call: WebhookDelivery) -> Option<bool> {
        let run = &call.run.run_id;
        fail_points::pass("webhook.leased");
        let sent = self.send(&call).await;
        fail_points::pass("webhook.sent");
        let written = match &sent {
            Ok(()) => self.outbox.delivered(run).await,
            Err(error) => {
                let retry_at = self
                    .jittered_delay(&call)
                    .filter(|_| !matches!(error, DeliveryError::Permanent(_)));
                tracing::warn!(run_id = %run, %error, tries = call.tries + 1, given_up = retry_at.is_none(), "failed to deliver a webhook");
                let now = self.clock.now();
                self.outbox
                    .failed(
                        std::slice::from_ref(run),
                        &error.to_string(),
                        retry_at.map(|wait| now + wait),
                        now,
                    )
                    .await
            }
        };
        fail_points::pass("webhook.written");
        if let Err(error) = written {
            tracing::warn!(run_id = %run, %error, "failed to store the outcome of a webhook; it will be sent again");
        }
        match sent {
            Ok(()) | Err(DeliveryError::Rejected(_)) => Some(true),
            Err(DeliveryError::Unavailable(_)) => Some(false),
            Err(DeliveryError::Permanent(_)) => None,
        }
    }

    /// Returns the delay after the next failure of a call, unless it is the last. The jitter
    /// spreads calls that failed together.
    fn jittered_delay(&self, call: &WebhookDelivery) -> Option<TimeDelta> {
        let wait = self.retry_delay(call)?;
        let [random, ..] = <[u8; 32]>::from(Sha256::digest(format!(
            "{} {}",
            call.run.run_id, call.tries
        )));
        TimeDelta::from_std(wait.mul_f64(0.9 + 0.2 * f64::from(random) / 255.0)).ok()
    }

    fn retry_delay(&self, call: &WebhookDelivery) -> Option<Duration> {
        self.options
            .retry_delays
            .get(usize::try_from(call.tries).ok()?)
            .copied()
    }

    async fn send(&self, call: &WebhookDelivery) -> Result<(), DeliveryError> {
        let url = self
            .options
            .policy
            .read(&call.call.url)
            .map_err(|forbidden| DeliveryError::Permanent(forbidden.to_string()))?;
        let (now, id) = (self.clock.now(), call.run.run_id.as_str());
        let body = body_of(call, &iso(now)).to_string();
        let mut request = self
            .client
            .request(Method::POST, url)
            .map_err(|forbidden| DeliveryError::Permanent(forbidden.to_string()))?
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
        let mut response = request
            .body(body)
            .send()
            .await
            .map_err(|error| DeliveryError::Unavailable(error_chain(&error)))?;
        let status = response.status();
        // A connection whose response is read can be reused; a longer response closes it.
        let mut read = 0;
        while let Ok(Some(chunk)) = response.chunk().await {
            read += chunk.len();
            if read > MAX_RESPONSE_BYTES {
                break;
            }
        }
        match status {
            status if status.is_success() => Ok(()),
            StatusCode::GONE => Err(DeliveryError::Permanent(
                "the receiver answered 410 Gone".to_owned(),
            )),
            status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                Err(DeliveryError::Unavailable(status_text(status)))
            }
            status => Err(DeliveryError::Rejected(status_text(status))),
        }
    }
}

fn status_text(status: StatusCode) -> String {
    format!("the receiver answered {status}")
}

/// Returns the call's user, host and port; the host is empty if the URL is invalid.
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

/// Returns the run with its times, its values and its error.
fn body_of(call: &WebhookDelivery, sent_at: &str) -> Value {
    let run = RunView::new(&call.run, Dialect::Platform);
    let mut body = match serde_json::to_value(run) {
        Ok(Value::Object(fields)) => fields,
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

/// Returns an error with its causes, without the URL, which may hold a secret.
fn error_chain(error: &reqwest::Error) -> String {
    let mut text = if error.is_timeout() {
        "the receiver timed out".to_owned()
    } else {
        "failed to call the receiver".to_owned()
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

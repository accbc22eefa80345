//! Calls webhooks from the outbox until they are taken or given up. Nothing here can touch a run.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use futures_util::{StreamExt, stream};
use harness::clock::{Clock, iso};
use harness::runtime::runs::store::{StoreError, WebhookDelivery, WebhookOutbox};
use harness::runtime::tasks::{TaskKind, Tasks};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, StatusCode};
use serde_json::{Map, Value, json};

use super::WebhookPolicy;
use crate::dialect::Dialect;
use crate::wire::run_json;

/// How calls are made.
#[derive(Debug, Clone, Copy)]
pub struct SenderOptions {
    /// Which addresses may be called.
    pub policy: WebhookPolicy,
    /// How often to look for calls that are due.
    pub look: Duration,
    /// How long a receiver may take.
    pub patience: Duration,
    /// The wait after the first failure; it doubles with every further one.
    pub first_wait: Duration,
    /// How many times a call is tried before it is a dead letter.
    pub tries: u32,
}

impl Default for SenderOptions {
    fn default() -> Self {
        Self {
            policy: WebhookPolicy::default(),
            look: Duration::from_secs(1),
            patience: Duration::from_secs(10),
            first_wait: Duration::from_secs(5),
            tries: 10,
        }
    }
}

/// How many calls are under way at once.
const AT_ONCE: usize = 16;
/// How many calls are taken from the outbox at once.
const TAKEN: usize = 32;

/// The service that empties the outbox.
#[derive(Debug, Clone)]
pub struct WebhookSender {
    outbox: Arc<dyn WebhookOutbox>,
    clock: Arc<dyn Clock>,
    client: Client,
    options: SenderOptions,
}

/// Why a call was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum NotTaken {
    /// A later try may succeed.
    #[error("{0}")]
    Yet(String),
    /// No later try can.
    #[error("{0}")]
    Ever(String),
}

impl WebhookSender {
    /// A sender over `outbox`.
    pub fn new(outbox: Arc<dyn WebhookOutbox>, clock: Arc<dyn Clock>, options: SenderOptions) -> reqwest::Result<Self> {
        let client = Client::builder()
            .dns_resolver(Arc::new(Guarded(options.policy)))
            // A redirect or a proxy would lead past the check of the address.
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .timeout(options.patience)
            .user_agent(concat!("deerflow/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self { outbox, clock, client, options })
    }

    /// Sends until `tasks` shuts down.
    pub fn start(self, tasks: &Tasks) {
        let stop = tasks.token().clone();
        tasks.spawn(TaskKind::Service, "webhook sender", async move {
            while !stop.is_cancelled() {
                // Cut short by shutdown: a call that was not confirmed is sent again after its lease.
                match stop.run_until_cancelled(self.send_due()).await {
                    Some(Ok(TAKEN..)) => continue,
                    Some(Err(error)) => tracing::warn!(%error, "the outbox of webhooks cannot be read"),
                    _ => {}
                }
                let _stopped = stop.run_until_cancelled(tokio::time::sleep(self.options.look)).await;
            }
        });
    }

    /// Sends what is due now and says how much that was.
    pub async fn send_due(&self) -> Result<usize, StoreError> {
        let now = self.clock.now();
        let lease = self.options.patience * TAKEN.div_ceil(AT_ONCE) as u32 + Duration::from_secs(30);
        let until = now + TimeDelta::from_std(lease).unwrap_or_default();
        let calls = self.outbox.due(now, until, TAKEN).await?;
        let count = calls.len();
        stream::iter(calls).for_each_concurrent(AT_ONCE, |call| self.deliver(call)).await;
        Ok(count)
    }

    async fn deliver(&self, call: WebhookDelivery) {
        let run = &call.run.run_id;
        let written = match self.send(&call).await {
            Ok(()) => self.outbox.delivered(run).await,
            Err(error) => {
                let tries = call.tries + 1;
                let given_up = matches!(error, NotTaken::Ever(_)) || tries >= self.options.tries;
                let wait = self.options.first_wait * 2_u32.saturating_pow(call.tries.min(16));
                let again = (!given_up).then(|| self.clock.now() + TimeDelta::from_std(wait).unwrap_or_default());
                tracing::warn!(run_id = %run, %error, tries, given_up, "a webhook was not taken");
                self.outbox.failed(run, &error.to_string(), again).await
            }
        };
        if let Err(error) = written {
            tracing::warn!(run_id = %run, %error, "what became of a webhook cannot be stored; it is sent again");
        }
    }

    async fn send(&self, call: &WebhookDelivery) -> Result<(), NotTaken> {
        let url = self.options.policy.read(&call.call.url).map_err(|forbidden| NotTaken::Ever(forbidden.to_string()))?;
        let body = body_of(call, &iso(self.clock.now()));
        let answer = self.client.post(url).json(&body).send().await.map_err(|error| NotTaken::Yet(causes(&error)))?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            StatusCode::GONE => Err(NotTaken::Ever("the receiver is gone".to_owned())),
            status => Err(NotTaken::Yet(format!("the receiver answered {status}"))),
        }
    }
}

/// The run as it ended, when it did what, and what it left.
fn body_of(call: &WebhookDelivery, sent_at: &str) -> Value {
    let mut body = match run_json(&call.run, Dialect::Platform) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    body.insert("run_started_at".to_owned(), iso(call.call.started_at).into());
    body.insert("run_ended_at".to_owned(), iso(call.ended_at).into());
    body.insert("webhook_sent_at".to_owned(), sent_at.into());
    body.insert("values".to_owned(), call.call.values.clone().unwrap_or(Value::Null));
    let error = call.call.error.as_ref().map(|(name, message)| json!({ "error": name, "message": message }));
    body.insert("error".to_owned(), error.unwrap_or(Value::Null));
    Value::Object(body)
}

/// An error with all that caused it, without the address: it may hold a secret.
fn causes(error: &reqwest::Error) -> String {
    let mut text = if error.is_timeout() { "the receiver took too long".to_owned() } else { "the receiver cannot be called".to_owned() };
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}

/// Resolves names to addresses that may be called, at the moment of the call: what a name meant before does not count.
#[derive(Debug)]
struct Guarded(WebhookPolicy);

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = self.0;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let allowed: Vec<SocketAddr> = found.filter(|address| policy.allows(address.ip())).collect();
            if allowed.is_empty() {
                return Err(format!("{} has no address that may be called", name.as_str()).into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
#[path = "sender_tests.rs"]
mod tests;

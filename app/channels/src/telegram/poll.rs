//! Long polling: updates are confirmed by the next offset, after they are stored.

use std::convert::Infallible;
use std::time::Duration;

use harness::clock::Clock;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::platform::{EventSink, PlatformError, SinkError};

use super::api::BotApi;
use super::batch::{Batch, decode_batch};
use super::event::ALLOWED_UPDATES;
use super::failure::{Failure, Problem};
use super::me::Me;

/// Time for which the server holds a poll without updates.
const HOLD: Duration = Duration::from_secs(25);
/// Time for the transfer of a poll's answer.
const TRANSFER: Duration = Duration::from_secs(15);
/// Time for an answer that already arrived when the listener stops.
const LAST_ANSWER: Duration = Duration::from_millis(50);
/// Timeout of the call that confirms the last updates at the end.
const LAST_CALL: Duration = Duration::from_secs(2);
/// Pause before a batch is offered again to a full inbox.
const FULL_PAUSE: Duration = Duration::from_secs(1);
/// Maximum pause before a batch is offered again to a store that failed.
const MAX_STORE_PAUSE: Duration = Duration::from_secs(30);
/// Pause after an answer that confirms nothing.
const EMPTY_PAUSE: Duration = Duration::from_secs(1);
/// Pause after a failed poll, multiplied by the number of failures.
const FAILURE_PAUSE: Duration = Duration::from_secs(1);
/// Consecutive failures of polls after which the connection counts as lost.
const MAX_FAILURES: u32 = 3;

/// Poller of one bot.
pub(super) struct Poller<'a> {
    pub(super) api: &'a BotApi,
    pub(super) clock: &'a dyn Clock,
    pub(super) sink: &'a dyn EventSink,
}

impl std::fmt::Debug for Poller<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Poller")
            .field("api", self.api)
            .finish_non_exhaustive()
    }
}

impl Poller<'_> {
    /// Polls until `stop` or an error.
    pub(super) async fn run(
        &self,
        cursor: Option<String>,
        stop: CancellationToken,
    ) -> Result<(), PlatformError> {
        let mut offset = cursor.and_then(|cursor| cursor.parse::<i64>().ok());
        {
            let polling = self.poll_until_error(&mut offset);
            tokio::pin!(polling);
            tokio::select! {
                biased;
                result = &mut polling => return result.map(|never| match never {}),
                () = stop.cancelled() => {}
            }
            // A process that was frozen may find an answer that another process polls by now. Then
            // the call below would end the poll of that process.
            if let Ok(Err(error)) = timeout(LAST_ANSWER, polling).await {
                tracing::debug!(%error, "poll ended while the listener stopped");
                return Ok(());
            }
        }
        // The offset is that of stored updates. Without this call they would be delivered again.
        if offset.is_some() {
            let mut body = poll_body(offset, Duration::ZERO);
            body["limit"] = json!(1);
            if let Err(failure) = self.api.call_within("getUpdates", &body, LAST_CALL).await {
                tracing::debug!(error = %failure.description, "last updates were not confirmed");
            }
        }
        Ok(())
    }

    async fn poll_until_error(
        &self,
        offset: &mut Option<i64>,
    ) -> Result<Infallible, PlatformError> {
        let me = get_me(self.api).await?;
        self.delete_webhook().await?;
        let mut connected = false;
        let mut failures = 0;
        loop {
            // The first poll returns at once and shows that this process is the poller.
            let hold = if connected { HOLD } else { Duration::ZERO };
            let batch = match self.poll(*offset, hold, &me).await {
                Ok(batch) => batch,
                Err(failure) => {
                    if !matches!(failure.problem, Problem::RateLimited(_)) {
                        failures += 1;
                    }
                    self.handle(failure, failures).await?;
                    continue;
                }
            };
            failures = 0;
            if !connected {
                connected = true;
                self.sink.connected();
            }
            self.store(batch, offset).await?;
        }
    }

    async fn delete_webhook(&self) -> Result<(), PlatformError> {
        let body = json!({"drop_pending_updates": false});
        self.api.call("deleteWebhook", &body).await?;
        Ok(())
    }

    async fn poll(&self, offset: Option<i64>, hold: Duration, me: &Me) -> Result<Batch, Failure> {
        let body = poll_body(offset, hold);
        let answer = self.api.raw("getUpdates", &body, hold + TRANSFER).await?;
        if answer.status == 200
            && let Some(batch) = decode_batch(&answer.body, me, self.clock.now())
        {
            return Ok(batch);
        }
        let result = self.api.decode(&answer)?;
        tracing::debug!(kind = kind_of(&result), "poll returned no list of updates");
        Err(Failure::unavailable("the answer holds no list of updates"))
    }

    /// Waits after a failed poll, or returns the error that ends the connection.
    async fn handle(&self, failure: Failure, failures: u32) -> Result<(), PlatformError> {
        match failure.problem {
            Problem::RateLimited(delay) => {
                tracing::warn!(
                    seconds = delay.as_secs(),
                    "telegram limits the rate of polls"
                );
                sleep(delay).await;
                Ok(())
            }
            _ if failures >= MAX_FAILURES => Err(failure.into()),
            Problem::Webhook => {
                tracing::warn!("a webhook was set for the bot, removing it");
                self.delete_webhook().await
            }
            Problem::Unavailable => {
                tracing::debug!(error = %failure.description, "poll failed, trying again");
                sleep(FAILURE_PAUSE * failures).await;
                Ok(())
            }
            Problem::NotFound => Err(rejected(&failure)),
            _ => Err(failure.into()),
        }
    }

    /// Stores a batch and moves the offset. The same batch is offered until the sink takes it.
    async fn store(&self, batch: Batch, offset: &mut Option<i64>) -> Result<(), PlatformError> {
        for (update_id, error) in &batch.malformed {
            tracing::warn!(update_id = ?update_id, %error, "malformed update ignored");
        }
        let Some(next) = batch.next_offset else {
            if batch.updates > 0 {
                sleep(EMPTY_PAUSE).await;
            }
            return Ok(());
        };
        let mut pause = FULL_PAUSE;
        loop {
            let accepted = self
                .sink
                .accept(batch.events.clone(), Some(next.to_string()))
                .await;
            match accepted {
                Ok(()) => break,
                Err(SinkError::Fenced) => return Err(SinkError::Fenced.into()),
                Err(SinkError::Full) => sleep(FULL_PAUSE).await,
                Err(SinkError::Unavailable) => {
                    sleep(pause).await;
                    pause = (pause * 2).min(MAX_STORE_PAUSE);
                }
            }
        }
        *offset = Some(next);
        Ok(())
    }
}

/// Asks who the bot is.
pub(super) async fn get_me(api: &BotApi) -> Result<Me, PlatformError> {
    let result = api
        .call("getMe", &json!({}))
        .await
        .map_err(|failure| match failure.problem {
            Problem::NotFound => rejected(&failure),
            _ => failure.into(),
        })?;
    let me = Me::decode(&result).ok_or_else(|| {
        PlatformError::Unavailable("telegram did not describe the bot, check api_base".to_owned())
    })?;
    if me.id.to_string() != api.token_account() {
        tracing::warn!(bot_id = me.id, "the bot's id is not that of its token");
    }
    Ok(me)
}

fn rejected(failure: &Failure) -> PlatformError {
    PlatformError::Rejected(format!(
        "telegram does not know the bot token, enter the current one from BotFather: {}",
        failure.description
    ))
}

/// Builds the parameters of a poll.
fn poll_body(offset: Option<i64>, hold: Duration) -> Value {
    let mut body = json!({
        "timeout": hold.as_secs(),
        "limit": 100,
        "allowed_updates": ALLOWED_UPDATES,
    });
    if let Some(offset) = offset {
        body["offset"] = json!(offset);
    }
    body
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "list",
        Value::Object(_) => "object",
        _ => "scalar",
    }
}

//! Delivery of updates: long polling and the webhook that excludes it.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::failure::ApiFailure;
use super::params::Params;
use super::shared::Shared;

/// Longest time for which a poll waits, in seconds.
const MAX_WAIT: i64 = 50;

/// Delivers waiting updates, or waits for the first one.
pub(super) async fn get_updates(shared: &Shared, params: &Params) -> Result<Value, ApiFailure> {
    let offset = params.int("offset")?.unwrap_or(0);
    let limit = params.int("limit")?.unwrap_or(100).clamp(1, 100) as usize;
    let wait = params.int("timeout")?.unwrap_or(0).clamp(0, MAX_WAIT) as u64;
    let allowed = params.json("allowed_updates")?;
    let poller = shared.change(|world| {
        refuse_with_webhook(world.queue.webhook.as_deref())?;
        if let Some(allowed) = &allowed {
            world.queue.allow(allowed)?;
        }
        if offset != 0 {
            world.queue.confirm(offset);
        }
        world.queue.poller += 1;
        Ok(world.queue.poller)
    })?;
    let deadline = Instant::now() + Duration::from_secs(wait);
    loop {
        let changed = shared.changed.notified();
        tokio::pin!(changed);
        changed.as_mut().enable();
        {
            let world = shared.world();
            if world.queue.poller != poller {
                return Err(ApiFailure::conflict(
                    "terminated by other getUpdates request; make sure that only one bot \
                     instance is running",
                ));
            }
            refuse_with_webhook(world.queue.webhook.as_deref())?;
            let batch = world.queue.batch(limit);
            if !batch.is_empty() {
                return Ok(Value::Array(batch));
            }
        }
        if timeout_at(deadline, changed).await.is_err() {
            return Ok(json!([]));
        }
    }
}

fn refuse_with_webhook(webhook: Option<&str>) -> Result<(), ApiFailure> {
    match webhook {
        Some(_) => Err(ApiFailure::conflict(
            "can't use getUpdates method while webhook is active; use deleteWebhook to delete \
             the webhook first",
        )),
        None => Ok(()),
    }
}

/// Removes the webhook.
pub(super) fn delete_webhook(shared: &Shared, params: &Params) -> Result<Value, ApiFailure> {
    let drop_pending = params.flag("drop_pending_updates");
    shared.change(|world| {
        world.queue.webhook = None;
        if drop_pending {
            world.queue.clear();
        }
    });
    Ok(json!(true))
}

/// Sets or removes the webhook. The fake does not call it.
pub(super) fn set_webhook(shared: &Shared, params: &Params) -> Result<Value, ApiFailure> {
    let address = params
        .text("url")
        .filter(|address| !address.is_empty())
        .map(str::to_owned);
    shared.change(|world| world.queue.webhook = address);
    Ok(json!(true))
}

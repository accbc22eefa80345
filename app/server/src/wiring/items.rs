//! Creates the configured item store.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use chrono::TimeDelta;
use deerflow_domain::items::{ItemService, TtlPolicy};
use harness::models::RetryPolicy;
use harness::runtime::tasks::TaskKind;

use super::context::Context;
use super::stores::Stores;
use crate::item_index::embedding_index;

/// Creates the store and starts the deletion of its expired items.
pub(super) fn open(context: &Context<'_>, stores: &Stores) -> anyhow::Result<Arc<ItemService>> {
    let config = &context.now.store;
    let microseconds = |minutes: f64| (minutes * 60e6) as i64;
    let ttl = TtlPolicy {
        default: config
            .ttl
            .default_ttl
            .map(|life| TimeDelta::microseconds(microseconds(life))),
        refresh_on_read: config.ttl.refresh_on_read,
        sweep_every: Duration::from_secs_f64(config.ttl.sweep_interval_minutes * 60.0),
    };
    let retry = RetryPolicy::from(&context.now.llm_call);
    let index = config
        .index
        .as_ref()
        .map(|index| {
            embedding_index(
                index,
                retry,
                context.config.environment(),
                stores.clock.clone(),
            )
        })
        .transpose()
        .context("store.index.embed cannot be used")?;
    let items = Arc::new(ItemService::new(
        stores.items.clone(),
        index,
        ttl,
        stores.clock.clone(),
    ));
    context.tasks.spawn(
        TaskKind::Service,
        "store sweeper",
        items.clone().sweep_loop(context.tasks.token().clone()),
    );
    Ok(items)
}

//! Forgets what is over, again and again, by the configuration in force.

use chrono::TimeDelta;
use deerflow_domain::upkeep::{Retention, Upkeep};
use harness::config::RetentionConfig;
use harness::runtime::tasks::{TaskKind, Tasks};

use crate::config::ConfigHandle;

pub(super) fn follow(config: &ConfigHandle, upkeep: Upkeep, tasks: &Tasks) {
    let (config, token) = (config.clone(), tasks.token().clone());
    tasks.spawn(TaskKind::Service, "upkeep", async move {
        loop {
            let rules = config.current().retention.clone();
            match token.run_until_cancelled(upkeep.look(rules_of(&rules))).await {
                None => return,
                Some(Ok(None)) => {}
                Some(Ok(Some(forgotten))) if forgotten == Default::default() => {}
                Some(Ok(Some(forgotten))) => {
                    let (requests, letters, events) = (forgotten.requests, forgotten.letters, forgotten.events);
                    tracing::info!(requests, letters, events, "forgot keys of requests, dead letters and old journals");
                }
                Some(Err(error)) => tracing::warn!(%error, "what is over stays until the next look"),
            }
            tokio::select! {
                () = token.cancelled() => return,
                () = tokio::time::sleep(rules.sweep_interval()) => {}
            }
        }
    });
}

fn rules_of(config: &RetentionConfig) -> Retention {
    let days = |days: u64| TimeDelta::days(i64::try_from(days).unwrap_or(i64::MAX / 86_400_000));
    Retention { dead_letters: days(config.dead_letter_days), run_events: config.run_event_days.map(days) }
}

//! Forgets what is over, again and again, by the configuration in force.

use chrono::TimeDelta;
use deerflow_domain::upkeep::{HistoryRule, Retention, Upkeep, days_of};
use harness::config::AppConfig;
use harness::runtime::tasks::{TaskKind, Tasks};

use crate::config::ConfigHandle;

pub(super) fn follow(config: &ConfigHandle, upkeep: Upkeep, tasks: &Tasks) {
    let (config, token) = (config.clone(), tasks.token().clone());
    tasks.spawn(TaskKind::Service, "upkeep", async move {
        loop {
            let now = config.current();
            match token.run_until_cancelled(upkeep.look(rules_of(&now))).await {
                None => return,
                Some(Ok(None)) => {}
                Some(Ok(Some(forgotten))) if forgotten == Default::default() => {}
                Some(Ok(Some(forgotten))) => {
                    let (requests, letters) = (forgotten.requests, forgotten.letters);
                    let (batches, events, checkpoints) =
                        (forgotten.batches, forgotten.events, forgotten.checkpoints);
                    tracing::info!(
                        requests,
                        letters,
                        batches,
                        events,
                        checkpoints,
                        "forgot what is over"
                    );
                }
                Some(Err(error)) => {
                    tracing::warn!(%error, "what is over stays until the next look")
                }
            }
            tokio::select! {
                () = token.cancelled() => return,
                () = tokio::time::sleep(now.retention.sweep_interval()) => {}
            }
        }
    });
}

fn rules_of(config: &AppConfig) -> Retention {
    let streams = TimeDelta::seconds(
        i64::try_from(config.stream_bridge.stream_ttl_seconds).unwrap_or(i64::MAX / 1_000),
    );
    let retention = &config.retention;
    let (newest, days) = (retention.checkpoints_per_thread, retention.checkpoint_days);
    Retention {
        dead_letters: days_of(retention.dead_letter_days),
        streams,
        run_events: retention.run_event_days.map(days_of),
        histories: newest.or(days).map(|_| HistoryRule {
            newest: newest.unwrap_or(1),
            days,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histories_stay_whole_unless_a_number_or_days_are_said() {
        let rule = |newest, days| {
            let mut config = AppConfig::default();
            (
                config.retention.checkpoints_per_thread,
                config.retention.checkpoint_days,
            ) = (newest, days);
            rules_of(&config).histories
        };
        assert_eq!(rule(None, None), None);
        assert_eq!(
            rule(Some(9), None),
            Some(HistoryRule {
                newest: 9,
                days: None
            })
        );
        assert_eq!(
            rule(None, Some(3)),
            Some(HistoryRule {
                newest: 1,
                days: Some(3)
            })
        );
        assert_eq!(
            rule(Some(9), Some(3)),
            Some(HistoryRule {
                newest: 9,
                days: Some(3)
            })
        );
    }
}

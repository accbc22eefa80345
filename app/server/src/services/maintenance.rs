//! Deletes expired data at intervals, with the current configuration.

use chrono::TimeDelta;
use deerflow_domain::maintenance::{HistoryRule, Maintenance, Retention, days_of};
use harness::config::AppConfig;
use harness::runtime::tasks::{TaskKind, Tasks};

use crate::config::ConfigHandle;

pub(crate) fn spawn_sweep_loop(config: &ConfigHandle, maintenance: Maintenance, tasks: &Tasks) {
    let (config, token) = (config.clone(), tasks.token().clone());
    tasks.spawn(TaskKind::Service, "upkeep", async move {
        loop {
            let now = config.current();
            match token.run_until_cancelled(maintenance.sweep(retention_of(&now))).await {
                None => return,
                Some(Ok(None)) => {}
                Some(Ok(Some(report))) if report == Default::default() => {}
                Some(Ok(Some(report))) => {
                    let (requests, dead_letters) = (report.requests, report.dead_letters);
                    let (batches, events, checkpoints) =
                        (report.batches, report.events, report.checkpoints);
                    let flow_contents = report.flow_contents;
                    let (sign_ins, audit_entries) = (report.sign_ins, report.audit_entries);
                    tracing::info!(
                        requests,
                        dead_letters,
                        batches,
                        events,
                        checkpoints,
                        flow_contents,
                        sign_ins,
                        audit_entries,
                        "deleted expired data"
                    );
                }
                Some(Err(error)) => {
                    tracing::warn!(%error, "cannot delete expired data, retrying at the next interval")
                }
            }
            tokio::select! {
                () = token.cancelled() => return,
                () = tokio::time::sleep(now.retention.sweep_interval()) => {}
            }
        }
    });
}

fn retention_of(config: &AppConfig) -> Retention {
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
        audit: days_of(retention.audit_days),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histories_are_retained_without_configured_limit() {
        let rule = |newest, days| {
            let mut config = AppConfig::default();
            (
                config.retention.checkpoints_per_thread,
                config.retention.checkpoint_days,
            ) = (newest, days);
            retention_of(&config).histories
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

//! Sends progress and log notifications to the caller, as far as it requested them, without ever
//! blocking the run.
#![expect(
    deprecated,
    reason = "log messages are on their way out of the protocol, and what clients show today"
)]

use std::future::Future;

use rmcp::RoleServer;
use rmcp::model::{
    LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::RequestContext;
use tokio::sync::mpsc;

use crate::ask::RunListener;
use crate::progress::Activity;

/// Maximum number of queued notifications; further ones are dropped.
const MAX_QUEUED: usize = 64;
/// Logger name in log messages.
const LOGGER: &str = "agent";

/// Receives the reports of a run and queues notifications.
#[derive(Debug)]
pub(crate) struct ProgressSink {
    token: Option<ProgressToken>,
    level: Option<LoggingLevel>,
    queue: mpsc::Sender<Notification>,
}

#[derive(Debug)]
enum Notification {
    Progress(ProgressNotificationParam),
    Activity(LoggingMessageNotificationParam),
}

/// Returns the sink for a request, and a future that sends its notifications until the sink is
/// dropped and the queue is empty. Log messages below `level` are not sent.
pub(crate) fn of(
    context: &RequestContext<RoleServer>,
    level: Option<LoggingLevel>,
) -> (ProgressSink, impl Future<Output = ()> + Send + use<>) {
    let (queue, mut queued) = mpsc::channel(MAX_QUEUED);
    let sink = ProgressSink {
        token: context.meta.get_progress_token(),
        level: context.meta.log_level().or(level),
        queue,
    };
    let peer = context.peer.clone();
    let send_all = async move {
        while let Some(next) = queued.recv().await {
            let sent = match next {
                Notification::Progress(progress) => peer.notify_progress(progress).await,
                Notification::Activity(activity) => peer.notify_logging_message(activity).await,
            };
            if sent.is_err() {
                return;
            }
        }
    };
    (sink, send_all)
}

impl RunListener for ProgressSink {
    fn report_progress(&mut self, number: u32, status: String) {
        if let Some(token) = &self.token {
            let progress =
                ProgressNotificationParam::new(token.clone(), number.into()).with_message(status);
            _ = self.queue.try_send(Notification::Progress(progress));
        }
    }

    fn report_activity(&mut self, activity: Activity) {
        let level = if activity.is_problem {
            LoggingLevel::Warning
        } else {
            LoggingLevel::Info
        };
        if self.level.is_some_and(|least| is_at_least(level, least)) {
            let message =
                LoggingMessageNotificationParam::new(level, activity.data).with_logger(LOGGER);
            _ = self.queue.try_send(Notification::Activity(message));
        }
    }
}

/// Compares severities: the levels are declared in ascending order of severity.
fn is_at_least(level: LoggingLevel, least: LoggingLevel) -> bool {
    level as u8 >= least as u8
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn notifications_for(level: Option<LoggingLevel>, token: Option<ProgressToken>) -> usize {
        let (queue, queued) = mpsc::channel(MAX_QUEUED);
        let mut sink = ProgressSink {
            token,
            level,
            queue,
        };
        for is_problem in [false, true] {
            sink.report_activity(Activity {
                is_problem,
                data: json!({}),
            });
        }
        sink.report_progress(1, "at work".to_owned());
        queued.len()
    }

    #[test]
    fn client_receives_requested_notifications_only() {
        let token = || Some(ProgressToken(rmcp::model::NumberOrString::Number(1)));
        assert_eq!(notifications_for(None, None), 0);
        assert_eq!(notifications_for(None, token()), 1);
        assert_eq!(notifications_for(Some(LoggingLevel::Debug), None), 2);
        assert_eq!(notifications_for(Some(LoggingLevel::Warning), token()), 2);
        assert_eq!(notifications_for(Some(LoggingLevel::Error), None), 0);
    }

    #[test]
    fn slow_client_does_not_block_run() {
        let (queue, queued) = mpsc::channel(MAX_QUEUED);
        let mut sink = ProgressSink {
            token: None,
            level: Some(LoggingLevel::Debug),
            queue,
        };
        for _ in 0..MAX_QUEUED * 2 {
            sink.report_activity(Activity {
                is_problem: false,
                data: json!({}),
            });
        }
        assert_eq!(queued.len(), MAX_QUEUED);
    }
}

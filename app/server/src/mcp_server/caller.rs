//! Who asked: told of the run in the ways that were asked for, and never waited for.
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

use super::ask::Listener;
use super::news::Activity;

/// How much may wait to be told; what comes beyond that is not told.
const MOST_WAITING: usize = 64;
/// What log messages say they are from.
const LOGGER: &str = "agent";

/// The side of the run.
#[derive(Debug)]
pub(super) struct Caller {
    token: Option<ProgressToken>,
    level: Option<LoggingLevel>,
    telling: mpsc::Sender<Told>,
}

#[derive(Debug)]
enum Told {
    Progress(ProgressNotificationParam),
    Activity(LoggingMessageNotificationParam),
}

/// Who made this request, and the telling, which ends when the caller is dropped and everything was told. The client hears of
/// activities from `level` on.
pub(super) fn of(
    context: &RequestContext<RoleServer>,
    level: Option<LoggingLevel>,
) -> (Caller, impl Future<Output = ()> + Send + use<>) {
    let (telling, mut told) = mpsc::channel(MOST_WAITING);
    let caller = Caller {
        token: context.meta.get_progress_token(),
        level: context.meta.log_level().or(level),
        telling,
    };
    let peer = context.peer.clone();
    let tell = async move {
        while let Some(next) = told.recv().await {
            let sent = match next {
                Told::Progress(progress) => peer.notify_progress(progress).await,
                Told::Activity(activity) => peer.notify_logging_message(activity).await,
            };
            if sent.is_err() {
                return;
            }
        }
    };
    (caller, tell)
}

impl Listener for Caller {
    fn progress(&mut self, number: u32, doing: String) {
        if let Some(token) = &self.token {
            let progress =
                ProgressNotificationParam::new(token.clone(), number.into()).with_message(doing);
            _ = self.telling.try_send(Told::Progress(progress));
        }
    }

    fn activity(&mut self, activity: Activity) {
        let level = if activity.is_problem {
            LoggingLevel::Warning
        } else {
            LoggingLevel::Info
        };
        if self.level.is_some_and(|least| is_at_least(level, least)) {
            let message =
                LoggingMessageNotificationParam::new(level, activity.data).with_logger(LOGGER);
            _ = self.telling.try_send(Told::Activity(message));
        }
    }
}

/// Levels are listed from the least to the most serious.
fn is_at_least(level: LoggingLevel, least: LoggingLevel) -> bool {
    level as u8 >= least as u8
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn heard(level: Option<LoggingLevel>, token: Option<ProgressToken>) -> usize {
        let (telling, told) = mpsc::channel(MOST_WAITING);
        let mut caller = Caller {
            token,
            level,
            telling,
        };
        for is_problem in [false, true] {
            caller.activity(Activity {
                is_problem,
                data: json!({}),
            });
        }
        caller.progress(1, "at work".to_owned());
        told.len()
    }

    #[test]
    fn a_client_hears_what_it_asked_for() {
        let token = || Some(ProgressToken(rmcp::model::NumberOrString::Number(1)));
        assert_eq!(heard(None, None), 0);
        assert_eq!(heard(None, token()), 1);
        assert_eq!(heard(Some(LoggingLevel::Debug), None), 2);
        assert_eq!(heard(Some(LoggingLevel::Warning), token()), 2);
        assert_eq!(heard(Some(LoggingLevel::Error), None), 0);
    }

    #[test]
    fn who_does_not_listen_is_not_waited_for() {
        let (telling, told) = mpsc::channel(MOST_WAITING);
        let mut caller = Caller {
            token: None,
            level: Some(LoggingLevel::Debug),
            telling,
        };
        for _ in 0..MOST_WAITING * 2 {
            caller.activity(Activity {
                is_problem: false,
                data: json!({}),
            });
        }
        assert_eq!(told.len(), MOST_WAITING);
    }
}

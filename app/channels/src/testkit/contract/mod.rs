//! Contract suite of platforms: the promises that every adapter keeps.

mod receiving;
mod sending;
mod session;

use std::sync::Arc;
use std::time::Duration;

pub use receiving::{
    acknowledgement_follows_the_commit, broken_connection_loses_nothing,
    fenced_listener_acknowledges_nothing, invalid_credentials_are_final, message_arrives_complete,
    programs_are_ignored, redelivered_message_keeps_its_key, restart_continues_behind_the_cursor,
    stop_closes_the_connection, stop_does_not_wait_for_the_store,
};
pub use sending::{
    failure_of_the_platform_is_retryable, final_text_replaces_the_live_message,
    long_text_arrives_complete, rate_limit_has_its_exact_delay, repeated_delivery_is_shown_once,
};

use crate::platform::{ChatKind, Platform};

/// Fault of the next call that sends a message in the direct chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendFault {
    /// Refuses for this time, without an effect.
    RateLimited(Duration),
    /// Fails as a server with a temporary problem does, without an effect.
    Failed,
    /// Performs the call, and the connection breaks before the answer.
    LostReply,
}

/// Platform under test: usually a strict fake, with one bot, one person who writes in a direct chat
/// and in a group, and no rate limits except for scripted ones.
pub trait PlatformBench: Sized {
    /// Id of the person.
    const PERSON: &'static str;

    /// Returns the platform without connections.
    fn start() -> impl Future<Output = Self>;

    /// Builds an adapter of the bot, as a new process does.
    fn adapter(&self) -> Arc<dyn Platform>;

    /// Builds an adapter with a wrong secret. Returns the secret too.
    fn adapter_with_wrong_secret(&self) -> (Arc<dyn Platform>, String);

    /// `false` if the platform has direct chats only.
    fn has_groups(&self) -> bool {
        true
    }

    /// Writes as the person; in the group the text is addressed to the bot.
    fn say(&self, kind: ChatKind, text: &str);

    /// Writes in the group as another bot. `false` if the platform does not deliver that.
    fn say_as_program(&self, _text: &str) -> bool {
        false
    }

    /// Delivers the last message of the person again. `false` if the platform never does.
    fn redeliver(&self) -> bool;

    /// Returns the number of deliveries that were acknowledged, or `None` if the platform has no
    /// acknowledgements.
    fn acknowledged(&self) -> Option<usize>;

    /// Breaks all connections, or the next poll.
    fn disconnect(&self);

    /// `true` if no connection is open.
    fn is_disconnected(&self) -> bool;

    /// Scripts a fault. Returns the delay that the adapter has to report for a rate limit: the one
    /// of the fault, or a fixed one if the platform names none.
    fn fail_next(&self, fault: SendFault) -> Duration;

    /// `true` if the platform shows a message once that is sent twice with the same id.
    fn has_idempotency_keys(&self) -> bool {
        true
    }

    /// Returns the texts of the bot's messages in the direct chat in order, as the person sees them.
    fn shown(&self) -> Vec<String>;
}

/// Expands to one test per promise for a [`PlatformBench`](crate::testkit::PlatformBench). The crate
/// of the caller needs `tokio` with its macros.
#[macro_export]
macro_rules! platform_suite {
    ($bench:ty) => {
        $crate::platform_suite!($bench:
            acknowledgement_follows_the_commit,
            broken_connection_loses_nothing,
            failure_of_the_platform_is_retryable,
            fenced_listener_acknowledges_nothing,
            final_text_replaces_the_live_message,
            invalid_credentials_are_final,
            long_text_arrives_complete,
            message_arrives_complete,
            programs_are_ignored,
            rate_limit_has_its_exact_delay,
            redelivered_message_keeps_its_key,
            repeated_delivery_is_shown_once,
            restart_continues_behind_the_cursor,
            stop_closes_the_connection,
            stop_does_not_wait_for_the_store,
        );
    };
    ($bench:ty: $($promise:ident),+ $(,)?) => {
        $(
            #[tokio::test]
            async fn $promise() {
                $crate::testkit::contract::$promise(
                    <$bench as $crate::testkit::contract::PlatformBench>::start().await,
                )
                .await;
            }
        )+
    };
}

//! Contract suite of channel stores.

mod connections;
mod conversations;
mod credentials;
mod inbox;
mod inbox_limits;
mod inbox_rows;
mod lanes;
mod leases;
mod outbox;
mod outbox_links;

use std::sync::Arc;
use std::time::Duration;

use deerflow_runtime::testkit::{Keep, at};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::accounts::AccountStore;
use crate::channels::{
    Acceptance, Account, AccountClaim, ChannelStores, InboxBatch, InboxLimits, InboxMessage,
    MessageKey, NewInboxMessage, NewOutgoing, Urgency,
};

pub use connections::{
    code_is_refused_when_unknown_expired_used_or_misplaced, code_is_used_by_one_of_many,
    codes_are_limited_per_user_and_platform, concurrent_codes_do_not_exceed_limit,
    connection_is_disconnected_by_owner_only, connection_moves_to_last_owner_and_returns,
    connection_of_disabled_account_is_suspended, owners_racing_for_identity_leave_one_active,
    platform_is_disconnected_for_all_users,
};
pub use conversations::{
    conversation_is_created_once_and_updated, conversations_are_imported_once,
    renamed_chat_moves_conversations_and_links, renamed_chat_moves_unsent_messages,
    renamed_chat_moves_waiting_messages,
};
pub use credentials::credentials_version_grows_across_deletion;
pub use inbox::{
    accept_stores_messages_and_cursor_together, concurrent_accepts_store_message_once,
    redelivered_message_is_duplicate, waiting_messages_are_ordered_by_arrival,
};
pub use inbox_limits::{
    full_conversation_refuses_only_its_messages, full_inbox_writes_nothing,
    urgent_messages_are_never_limited,
};
pub use inbox_rows::{
    ended_rows_keep_their_end_and_replies, ended_rows_of_inbox_are_forgotten,
    inbox_is_listed_by_platform_and_state, long_and_unusual_texts_are_returned_unchanged,
    waiting_row_records_claims_progress_and_failures,
};
pub use lanes::closed_lane_holds_the_latest_time_and_is_forgotten;
pub use leases::{
    account_is_acquired_by_one_of_many, lease_expires_and_is_released,
    lease_of_wrong_clock_is_acquired, newer_claim_fences_every_write,
    revoked_claim_is_invalid_at_once, same_node_gets_new_epoch, stale_lease_is_not_renewed,
};
pub use outbox::{
    dead_letter_is_sent_again, outbox_is_listed_by_platform_and_state, outbox_is_ordered_per_chat,
    outgoing_message_is_stored_once, retried_message_records_attempts_and_progress,
};
pub use outbox_links::{ended_rows_of_outbox_are_forgotten, first_link_of_message_holds};

/// Generates one test per requirement of channel stores.
#[macro_export]
macro_rules! channel_store_suite {
    ($attrs:tt $open:expr) => {
        deerflow_runtime::promises! { $attrs $open, [$crate::testkit::channels]
            account_is_acquired_by_one_of_many
            lease_expires_and_is_released
            lease_of_wrong_clock_is_acquired
            same_node_gets_new_epoch
            stale_lease_is_not_renewed
            revoked_claim_is_invalid_at_once
            newer_claim_fences_every_write
            accept_stores_messages_and_cursor_together
            redelivered_message_is_duplicate
            concurrent_accepts_store_message_once
            waiting_messages_are_ordered_by_arrival
            full_conversation_refuses_only_its_messages
            full_inbox_writes_nothing
            urgent_messages_are_never_limited
            waiting_row_records_claims_progress_and_failures
            ended_rows_keep_their_end_and_replies
            ended_rows_of_inbox_are_forgotten
            inbox_is_listed_by_platform_and_state
            long_and_unusual_texts_are_returned_unchanged
            outgoing_message_is_stored_once
            outbox_is_ordered_per_chat
            retried_message_records_attempts_and_progress
            dead_letter_is_sent_again
            outbox_is_listed_by_platform_and_state
            first_link_of_message_holds
            ended_rows_of_outbox_are_forgotten
            closed_lane_holds_the_latest_time_and_is_forgotten
            conversation_is_created_once_and_updated
            conversations_are_imported_once
            renamed_chat_moves_conversations_and_links
            renamed_chat_moves_waiting_messages
            renamed_chat_moves_unsent_messages
            codes_are_limited_per_user_and_platform
            concurrent_codes_do_not_exceed_limit
            code_is_refused_when_unknown_expired_used_or_misplaced
            code_is_used_by_one_of_many
            connection_moves_to_last_owner_and_returns
            owners_racing_for_identity_leave_one_active
            connection_is_disconnected_by_owner_only
            platform_is_disconnected_for_all_users
            connection_of_disabled_account_is_suspended
            credentials_version_grows_across_deletion
        }
    };
}

/// Channel stores, opened fresh for each test.
#[derive(Debug, Clone)]
pub struct ChannelSuite {
    /// Stores under test.
    pub stores: ChannelStores,
    /// Account store over the same database, if there is one.
    pub accounts: Option<Arc<dyn AccountStore>>,
    /// Resources that must live as long as the stores.
    pub keep: Arc<dyn Keep>,
}

/// Duration of leases.
const LEASE: Duration = Duration::from_secs(15);

fn bot() -> Account {
    Account::new("telegram", "7")
}

fn other_bot() -> Account {
    Account::new("slack", "U1")
}

async fn claim(stores: &ChannelStores, account: &Account) -> AccountClaim {
    stores
        .leases
        .acquire(account, "n1", LEASE, at(0))
        .await
        .expect("written")
        .expect("free")
}

fn key(account: &Account, message: &str) -> MessageKey {
    MessageKey {
        account: account.clone(),
        workspace: String::new(),
        chat: "c1".to_owned(),
        message: message.to_owned(),
    }
}

/// Returns a message of the first bot.
fn message(id: &str, conversation: &str) -> NewInboxMessage {
    NewInboxMessage {
        key: key(&bot(), id),
        conversation: conversation.to_owned(),
        urgency: Urgency::InOrder,
        event: json!({"text": id}),
    }
}

fn batch(messages: Vec<NewInboxMessage>) -> InboxBatch {
    InboxBatch {
        messages,
        cursor: None,
    }
}

/// Accepts messages with the default limits at time 1.
async fn accept(
    stores: &ChannelStores,
    claim: &AccountClaim,
    messages: Vec<NewInboxMessage>,
) -> Vec<Acceptance> {
    stores
        .inbox
        .accept(claim, batch(messages), InboxLimits::default(), at(1))
        .await
        .expect("written")
}

/// Returns the waiting messages of a conversation of the first bot.
async fn waiting(stores: &ChannelStores, conversation: &str) -> Vec<InboxMessage> {
    stores
        .inbox
        .waiting(&bot(), conversation, Urgency::InOrder, 100)
        .await
        .expect("read")
}

fn names(rows: &[InboxMessage]) -> Vec<&str> {
    rows.iter().map(|row| row.key.message.as_str()).collect()
}

/// Returns a message to be sent by the first bot.
fn outgoing(n: u128, chat: &str, body: Value) -> NewOutgoing {
    NewOutgoing {
        id: Uuid::from_u128(n),
        account: bot(),
        chat: chat.to_owned(),
        conversation: format!("{chat}:k"),
        part: 0,
        body,
    }
}

//! Conversion between messages of the inbox and their rows.

use chrono::{DateTime, Utc};
use deerflow_domain::channels::{
    Account, InboxMessage, InboxState, MessageKey, NewInboxMessage, Urgency,
};
use sea_orm::{DbErr, IntoActiveModel, NotSet};
use uuid::Uuid;

use crate::db::entity::{channel_inbox, micros, moment, plain};
use crate::db::json::{from_json, json_text};

/// Returns the stored text of an urgency.
pub(super) fn urgency_text(urgency: Urgency) -> &'static str {
    match urgency {
        Urgency::InOrder => "in_order",
        Urgency::Immediate => "immediate",
    }
}

/// Parses the stored text of an urgency.
pub(super) fn parse_urgency(text: &str) -> Option<Urgency> {
    [Urgency::InOrder, Urgency::Immediate]
        .into_iter()
        .find(|urgency| urgency_text(*urgency) == text)
}

/// Builds the row of a new message, without a position.
pub(super) fn new_row(message: &NewInboxMessage, at: DateTime<Utc>) -> channel_inbox::ActiveModel {
    let key = &message.key;
    let row = channel_inbox::Model {
        seq: 0,
        inbox_id: key.id().to_string(),
        provider: plain(&key.account.provider),
        account: plain(&key.account.id),
        workspace: plain(&key.workspace),
        chat: plain(&key.chat),
        message: plain(&key.message),
        conversation: plain(&message.conversation),
        urgency: urgency_text(message.urgency).to_owned(),
        state: InboxState::Waiting.as_str().to_owned(),
        note: None,
        claims: 0,
        failures: 0,
        failed_since: None,
        not_before: None,
        received_at: micros(at),
        ended_at: None,
        progress_json: "null".to_owned(),
        event_json: json_text(&message.event),
    };
    channel_inbox::ActiveModel {
        seq: NotSet,
        ..row.into_active_model()
    }
}

/// Returns `None` for an unreadable row, so that it does not hide the others.
pub(super) fn readable(row: channel_inbox::Model) -> Option<InboxMessage> {
    record(row)
        .inspect_err(|error| tracing::error!(%error, "a row of the inbox is damaged, omitted"))
        .ok()
}

fn record(row: channel_inbox::Model) -> Result<InboxMessage, DbErr> {
    let id = row.inbox_id.clone();
    let read = || -> Result<InboxMessage, String> {
        let number = |value: i64| u32::try_from(value).map_err(|error| error.to_string());
        Ok(InboxMessage {
            id: Uuid::parse_str(&row.inbox_id).map_err(|error| error.to_string())?,
            seq: row.seq,
            urgency: parse_urgency(&row.urgency).ok_or("its urgency is unknown")?,
            event: from_json(&row.event_json)?,
            state: InboxState::parse(&row.state).ok_or("its state is unknown")?,
            claims: number(row.claims)?,
            failures: number(row.failures)?,
            progress: from_json(&row.progress_json)?,
            key: MessageKey {
                account: Account::new(row.provider, row.account),
                workspace: row.workspace,
                chat: row.chat,
                message: row.message,
            },
            conversation: row.conversation,
            note: row.note,
            failed_since: row.failed_since.map(moment),
            not_before: row.not_before.map(moment),
            received_at: moment(row.received_at),
            ended_at: row.ended_at.map(moment),
        })
    };
    read().map_err(|reason| DbErr::Type(format!("inbox row {id} is damaged: {reason}")))
}

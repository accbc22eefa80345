//! Conversion between messages to be sent and their rows.

use chrono::{DateTime, Utc};
use deerflow_domain::channels::{Account, NewOutgoing, Outgoing, OutgoingState};
use sea_orm::sea_query::{InsertStatement, OnConflict};
use sea_orm::{DbErr, EntityTrait, IntoActiveModel, NotSet, QueryTrait};
use uuid::Uuid;

use crate::db::entity::{channel_outbox, micros, moment, plain};
use crate::db::json::{from_json, json_text};

/// Returns an insert of the messages whose ids are new; `None` for no messages.
pub(super) fn insert_new(messages: &[NewOutgoing], at: DateTime<Utc>) -> Option<InsertStatement> {
    if messages.is_empty() {
        return None;
    }
    let rows = messages.iter().map(|message| new_row(message, at));
    let known = OnConflict::column(channel_outbox::Column::OutboxId)
        .do_nothing()
        .to_owned();
    let mut insert = channel_outbox::Entity::insert_many(rows).into_query();
    insert.on_conflict(known);
    Some(insert)
}

fn new_row(message: &NewOutgoing, at: DateTime<Utc>) -> channel_outbox::ActiveModel {
    let row = channel_outbox::Model {
        seq: 0,
        outbox_id: message.id.to_string(),
        provider: plain(&message.account.provider),
        account: plain(&message.account.id),
        chat: plain(&message.chat),
        conversation: plain(&message.conversation),
        part: i64::from(message.part),
        state: OutgoingState::Pending.as_str().to_owned(),
        attempts: 0,
        not_before: micros(at),
        error: None,
        created_at: micros(at),
        ended_at: None,
        platform_ids_json: "[]".to_owned(),
        progress_json: "null".to_owned(),
        body_json: json_text(&message.body),
    };
    channel_outbox::ActiveModel {
        seq: NotSet,
        ..row.into_active_model()
    }
}

/// Returns `None` for an unreadable row, so that it does not hide the others.
pub(super) fn readable(row: channel_outbox::Model) -> Option<Outgoing> {
    record(row)
        .inspect_err(|error| tracing::error!(%error, "a row of the outbox is damaged, omitted"))
        .ok()
}

/// Reads a row. The error of an unreadable one names it.
pub(super) fn record(row: channel_outbox::Model) -> Result<Outgoing, DbErr> {
    let id = row.outbox_id.clone();
    let read = || -> Result<Outgoing, String> {
        let number = |value: i64| u32::try_from(value).map_err(|error| error.to_string());
        Ok(Outgoing {
            seq: row.seq,
            state: OutgoingState::parse(&row.state).ok_or("its state is unknown")?,
            attempts: number(row.attempts)?,
            not_before: moment(row.not_before),
            progress: from_json(&row.progress_json)?,
            error: row.error,
            platform_ids: from_json(&row.platform_ids_json)?,
            created_at: moment(row.created_at),
            ended_at: row.ended_at.map(moment),
            message: NewOutgoing {
                id: Uuid::parse_str(&row.outbox_id).map_err(|error| error.to_string())?,
                account: Account::new(row.provider, row.account),
                chat: row.chat,
                conversation: row.conversation,
                part: number(row.part)?,
                body: from_json(&row.body_json)?,
            },
        })
    };
    read().map_err(|reason| DbErr::Type(format!("outbox row {id} is damaged: {reason}")))
}

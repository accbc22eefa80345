//! Conversion between a cron and its row.

use deerflow_core::ids::ThreadId;
use deerflow_domain::crons::{AfterRun, Cron};
use sea_orm::{ColumnTrait, DbErr, EntityTrait, QueryFilter, Select};
use uuid::Uuid;

use crate::db::entity::{cron, micros, moment, plain};
use crate::db::json::{from_json, json_text};

/// Returns the query for the crons of a user.
pub(super) fn of_user(user: &str) -> Select<cron::Entity> {
    cron::Entity::find().filter(cron::Column::UserId.eq(plain(user)))
}

/// Builds the row of a cron.
pub(super) fn new_row(cron: &Cron) -> cron::Model {
    cron::Model {
        cron_id: cron.cron_id.to_string(),
        user_id: plain(&cron.user_id),
        assistant_id: plain(&cron.assistant_id),
        thread_id: cron.thread_id.as_ref().map(ToString::to_string),
        schedule: plain(&cron.schedule),
        timezone: cron.timezone.as_deref().map(plain),
        end_time: cron.end_time.map(micros),
        on_run_completed: cron.on_run_completed.map(|after| after.as_str().to_owned()),
        enabled: cron.enabled,
        metadata_json: json_text(&cron.metadata),
        payload_json: json_text(&cron.payload),
        next_run_date: cron.next_run_date.map(micros),
        fires_for: None,
        taken_at: None,
        created_at: micros(cron.created_at),
        updated_at: micros(cron.updated_at),
    }
}

/// Reads a row. The error of an unreadable one names the cron.
pub(super) fn record(row: cron::Model) -> Result<Cron, DbErr> {
    let damaged =
        |reason: String| DbErr::Type(format!("cron {} is damaged: {reason}", row.cron_id));
    Ok(Cron {
        cron_id: Uuid::parse_str(&row.cron_id).map_err(|error| damaged(error.to_string()))?,
        thread_id: row
            .thread_id
            .clone()
            .map(ThreadId::parse)
            .transpose()
            .map_err(|error| damaged(error.to_string()))?,
        metadata: from_json(&row.metadata_json).map_err(damaged)?,
        payload: from_json(&row.payload_json).map_err(damaged)?,
        on_run_completed: row.on_run_completed.as_deref().and_then(AfterRun::parse),
        user_id: row.user_id,
        assistant_id: row.assistant_id,
        schedule: row.schedule,
        timezone: row.timezone,
        end_time: row.end_time.map(moment),
        enabled: row.enabled,
        next_run_date: row.next_run_date.map(moment),
        created_at: moment(row.created_at),
        updated_at: moment(row.updated_at),
    })
}

/// Returns `None` for an unreadable row, so that it does not hide the others.
pub(super) fn readable(row: cron::Model) -> Option<Cron> {
    record(row)
        .inspect_err(|error| tracing::error!(%error, "a cron is damaged, omitted"))
        .ok()
}

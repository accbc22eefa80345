//! Creates, changes and deletes assistants within a transaction.

use chrono::{DateTime, Utc};
use deerflow_core::quota::Quota;
use deerflow_domain::assistants::{
    Assistant, AssistantPatch, CreatedAssistant, NewAssistant, check_versions,
};
use deerflow_runtime::runs::store::StoreError;
use sea_orm::sea_query::OnConflict;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, DatabaseTransaction, DbErr, EntityTrait, IntoActiveModel,
    QueryFilter, QueryOrder, QuerySelect,
};
use uuid::Uuid;

use super::row::{new_row, record, version, version_row, write_content};
use crate::db::entity::{assistant, assistant_version, micros};
use crate::db::quotas::QuotaCheck;
use crate::db::tx::TxError;

/// A change, with the assistant and the user it applies to.
#[derive(Debug)]
pub(super) struct Change<T> {
    pub(super) id: Uuid,
    pub(super) user: Option<String>,
    pub(super) what: T,
    pub(super) at: DateTime<Utc>,
}

/// Creates the assistant with its first version, or returns the existing one.
pub(super) async fn create(
    tx: &DatabaseTransaction,
    new: &NewAssistant,
    check: &QuotaCheck,
) -> Result<CreatedAssistant, TxError<StoreError>> {
    let row = new_row(new);
    let insert = assistant::Entity::insert(row.clone().into_active_model())
        .on_conflict(OnConflict::new().do_nothing().to_owned());
    if insert.exec_without_returning(tx).await? == 1 {
        assistant_version::Entity::insert(version_row(&row).into_active_model())
            .exec_without_returning(tx)
            .await?;
        check.inserted(tx, Quota::Assistants).await?;
        return Ok(CreatedAssistant::New(record(row)?));
    }
    match assistant::Entity::find_by_id(row.assistant_id)
        .one(tx)
        .await?
    {
        Some(existing) if existing.user_id == new.user_id => {
            Ok(CreatedAssistant::Existing(record(existing)?))
        }
        _ => Ok(CreatedAssistant::Taken),
    }
}

/// Creates the next version and makes it current.
pub(super) async fn patch(
    tx: &DatabaseTransaction,
    work: &Change<AssistantPatch>,
) -> Result<Option<Assistant>, TxError<StoreError>> {
    let Some(mut row) = locked(tx, work.id, work.user.as_deref()).await? else {
        return Ok(None);
    };
    let refused = |exceeded| TxError::Refused(StoreError::QuotaExceeded(exceeded));
    let newest = assistant_version::Entity::find()
        .filter(assistant_version::Column::AssistantId.eq(row.assistant_id.as_str()))
        .order_by_desc(assistant_version::Column::Version)
        .one(tx)
        .await?;
    // Versions are numbered from 1 and are only deleted with their assistant.
    let newest = newest.map_or(row.version, |newest| newest.version);
    check_versions(newest.unsigned_abs()).map_err(refused)?;
    let content = record(row.clone())?.content;
    let content = work.what.applied_to(content).map_err(TxError::Refused)?;
    write_content(&mut row, &content);
    row.version = newest + 1;
    row.updated_at = micros(work.at);
    assistant_version::Entity::insert(version_row(&row).into_active_model())
        .exec_without_returning(tx)
        .await?;
    set_current(tx, row).await.map(Some)
}

/// Makes an existing version current.
pub(super) async fn set_latest(
    tx: &DatabaseTransaction,
    work: &Change<u32>,
) -> Result<Option<Assistant>, TxError<StoreError>> {
    let Some(mut row) = locked(tx, work.id, work.user.as_deref()).await? else {
        return Ok(None);
    };
    let requested =
        assistant_version::Entity::find_by_id((row.assistant_id.clone(), i64::from(work.what)))
            .one(tx)
            .await?;
    let Some(requested) = requested else {
        return Ok(None);
    };
    let requested = version(requested)?;
    write_content(&mut row, &requested.content);
    row.version = i64::from(requested.version);
    row.updated_at = micros(work.at);
    set_current(tx, row).await.map(Some)
}

async fn set_current(
    tx: &DatabaseTransaction,
    row: assistant::Model,
) -> Result<Assistant, TxError<StoreError>> {
    row.clone()
        .into_active_model()
        .reset_all()
        .update(tx)
        .await?;
    Ok(record(row)?)
}

/// Deletes the assistant with its versions.
pub(super) async fn delete(
    tx: &DatabaseTransaction,
    id: Uuid,
    user: Option<&str>,
) -> Result<bool, TxError<StoreError>> {
    let Some(row) = locked(tx, id, user).await? else {
        return Ok(false);
    };
    let versions = assistant_version::Column::AssistantId.eq(row.assistant_id.as_str());
    assistant_version::Entity::delete_many()
        .filter(versions)
        .exec(tx)
        .await?;
    assistant::Entity::delete_by_id(row.assistant_id)
        .exec(tx)
        .await?;
    Ok(true)
}

/// Reads the user's row and locks it if the database has row locks. SQLite has a single writer
/// anyway.
async fn locked(
    tx: &DatabaseTransaction,
    id: Uuid,
    user: Option<&str>,
) -> Result<Option<assistant::Model>, DbErr> {
    let mut select = assistant::Entity::find_by_id(id.to_string()).lock_exclusive();
    if let Some(user) = user {
        select = select.filter(assistant::Column::UserId.eq(user));
    }
    select.one(tx).await
}

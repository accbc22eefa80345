//! Making, changing and removing assistants, inside a transaction.

use chrono::{DateTime, Utc};
use deerflow_domain::assistants::{Assistant, AssistantPatch, CreatedAssistant, NewAssistant};
use harness::runtime::runs::store::StoreError;
use sea_orm::sea_query::OnConflict;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, DatabaseTransaction, DbErr, EntityTrait, IntoActiveModel,
    QueryFilter, QueryOrder, QuerySelect,
};
use uuid::Uuid;

use super::row::{new_row, record, version, version_row, write_content};
use crate::entity::{assistant, assistant_version, micros};
use crate::tx::TxError;

/// A change and whose assistant it means.
#[derive(Debug)]
pub(super) struct Change<T> {
    pub(super) id: Uuid,
    pub(super) user: Option<String>,
    pub(super) what: T,
    pub(super) at: DateTime<Utc>,
}

/// Makes the assistant with its first version, or finds whose it is.
pub(super) async fn create(
    tx: &DatabaseTransaction,
    new: &NewAssistant,
) -> Result<CreatedAssistant, TxError<StoreError>> {
    let row = new_row(new);
    let insert = assistant::Entity::insert(row.clone().into_active_model())
        .on_conflict(OnConflict::new().do_nothing().to_owned());
    if insert.exec_without_returning(tx).await? == 1 {
        assistant_version::Entity::insert(version_row(&row).into_active_model())
            .exec_without_returning(tx)
            .await?;
        return Ok(CreatedAssistant::New(record(row)?));
    }
    match assistant::Entity::find_by_id(row.assistant_id)
        .one(tx)
        .await?
    {
        Some(held) if held.user_id == new.user_id => Ok(CreatedAssistant::Existing(record(held)?)),
        _ => Ok(CreatedAssistant::Taken),
    }
}

/// Makes the next version and puts it in force.
pub(super) async fn patch(
    tx: &DatabaseTransaction,
    work: &Change<AssistantPatch>,
) -> Result<Option<Assistant>, TxError<StoreError>> {
    let Some(mut row) = locked(tx, work.id, work.user.as_deref()).await? else {
        return Ok(None);
    };
    let newest = assistant_version::Entity::find()
        .filter(assistant_version::Column::AssistantId.eq(row.assistant_id.as_str()))
        .order_by_desc(assistant_version::Column::Version)
        .one(tx)
        .await?;
    let content = work.what.applied_to(record(row.clone())?.content);
    write_content(&mut row, &content);
    row.version = newest.map_or(row.version, |newest| newest.version) + 1;
    row.updated_at = micros(work.at);
    assistant_version::Entity::insert(version_row(&row).into_active_model())
        .exec_without_returning(tx)
        .await?;
    put_in_force(tx, row).await.map(Some)
}

/// Puts a version in force again.
pub(super) async fn set_latest(
    tx: &DatabaseTransaction,
    work: &Change<u32>,
) -> Result<Option<Assistant>, TxError<StoreError>> {
    let Some(mut row) = locked(tx, work.id, work.user.as_deref()).await? else {
        return Ok(None);
    };
    let wanted =
        assistant_version::Entity::find_by_id((row.assistant_id.clone(), i64::from(work.what)))
            .one(tx)
            .await?;
    let Some(wanted) = wanted else {
        return Ok(None);
    };
    let wanted = version(wanted)?;
    write_content(&mut row, &wanted.content);
    row.version = i64::from(wanted.version);
    row.updated_at = micros(work.at);
    put_in_force(tx, row).await.map(Some)
}

async fn put_in_force(
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

/// Removes the assistant with its versions.
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

/// The user's row, locked where the database has row locks. SQLite has one writer anyway.
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

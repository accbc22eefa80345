//! Searches for assistants and their versions.

use deerflow_core::actor_context::Owner;
use deerflow_domain::assistants::{
    Assistant, AssistantSearch, AssistantSort, AssistantVersion, VersionQuery,
};
use deerflow_domain::containment::contains;
use deerflow_runtime::runs::store::StoreError;
use sea_orm::sea_query::{Expr, SimpleExpr};
use sea_orm::{
    ColumnTrait, DatabaseConnection, DbBackend, EntityTrait, Order, PaginatorTrait, QueryFilter,
    QueryOrder, QuerySelect, Select,
};
use uuid::Uuid;

use super::row::{readable, record, version};
use crate::db::entity::{assistant, assistant_version, plain};
use crate::db::error::read;
use crate::db::json::from_json;

/// Maximum number of ids in one statement.
const PER_SELECT: usize = 1_000;
/// Number of versions that are read at a time while filtering.
const PAGE: u64 = 100;

/// Restricts a query to the owner's assistants.
pub(super) fn owned(
    select: Select<assistant::Entity>,
    owner: &Owner,
) -> Result<Select<assistant::Entity>, StoreError> {
    Ok(of_user(select, owner.resolve()?.as_deref()))
}

/// Restricts a query to the assistants of a user, if there is one.
pub(super) fn of_user(
    select: Select<assistant::Entity>,
    user: Option<&str>,
) -> Select<assistant::Entity> {
    match user {
        Some(user) => select.filter(assistant::Column::UserId.eq(user)),
        None => select,
    }
}

/// Returns those of these assistants that exist, in any order. A row that cannot be read is an
/// error, as it is for one assistant.
pub(super) async fn get_many(
    db: &DatabaseConnection,
    ids: &[Uuid],
    owner: &Owner,
) -> Result<Vec<Assistant>, StoreError> {
    let mut found = Vec::with_capacity(ids.len());
    for some in ids.chunks(PER_SELECT) {
        let rows = owned(assistant::Entity::find(), owner)?
            .filter(assistant::Column::AssistantId.is_in(some.iter().map(Uuid::to_string)))
            .all(db)
            .await;
        let records =
            rows.and_then(|rows| rows.into_iter().map(record).collect::<Result<Vec<_>, _>>());
        found.extend(read(records)?);
    }
    Ok(found)
}

/// Returns a page of matching assistants.
pub(super) async fn search(
    db: &DatabaseConnection,
    search: &AssistantSearch,
    owner: &Owner,
) -> Result<Vec<Assistant>, StoreError> {
    let select = ordered(indexed(search, owner)?, search, db);
    let rows = if is_indexed(search) {
        read(
            select
                .limit(search.limit as u64)
                .offset(search.offset as u64)
                .all(db)
                .await,
        )?
    } else {
        let page: Vec<String> = matching(db, select, search)
            .await?
            .into_iter()
            .skip(search.offset)
            .take(search.limit)
            .collect();
        let mut rows = Vec::with_capacity(page.len());
        for some in page.chunks(PER_SELECT) {
            let rows_of_page = ordered(assistant::Entity::find(), search, db)
                .filter(assistant::Column::AssistantId.is_in(some));
            rows.extend(read(rows_of_page.all(db).await)?);
        }
        rows
    };
    Ok(rows
        .into_iter()
        .filter_map(|row| readable(record(row)))
        .collect())
}

/// Counts all matching assistants, ignoring limit and offset.
pub(super) async fn count(
    db: &DatabaseConnection,
    search: &AssistantSearch,
    owner: &Owner,
) -> Result<u64, StoreError> {
    let select = indexed(search, owner)?;
    if is_indexed(search) {
        return read(select.count(db).await);
    }
    Ok(matching(db, select, search).await?.len() as u64)
}

/// Returns `true` if the database can decide alone. Names and metadata are compared in this
/// process.
fn is_indexed(search: &AssistantSearch) -> bool {
    search.name.is_none() && search.metadata.is_empty()
}

/// Returns the ids of matching assistants, in the order of `select`. Reads only names and metadata.
async fn matching(
    db: &DatabaseConnection,
    select: Select<assistant::Entity>,
    search: &AssistantSearch,
) -> Result<Vec<String>, StoreError> {
    let columns = [
        assistant::Column::AssistantId,
        assistant::Column::Name,
        assistant::Column::MetadataJson,
    ];
    let rows: Vec<(String, String, String)> = read(
        select
            .select_only()
            .columns(columns)
            .into_tuple()
            .all(db)
            .await,
    )?;
    let matches = |(id, name, metadata): (String, String, String)| {
        let metadata = from_json(&metadata)
            .inspect_err(|error| {
                tracing::error!(id, error, "an assistant is damaged, omitted from a list")
            })
            .ok()?;
        search.metadata_matches(&name, &metadata).then_some(id)
    };
    Ok(rows.into_iter().filter_map(matches).collect())
}

/// Builds a query with the filters that the database can evaluate.
fn indexed(
    search: &AssistantSearch,
    owner: &Owner,
) -> Result<Select<assistant::Entity>, StoreError> {
    let except = search.except.iter().map(Uuid::to_string);
    let select = owned(assistant::Entity::find(), owner)?
        .filter(assistant::Column::AssistantId.is_not_in(except));
    Ok(match &search.graph {
        Some(graph) => select.filter(assistant::Column::GraphId.eq(plain(graph))),
        None => select,
    })
}

/// Returns a page of an assistant's versions, newest first. With a metadata filter, stops reading
/// when the page is full.
pub(super) async fn versions(
    db: &DatabaseConnection,
    id: Uuid,
    query: &VersionQuery,
) -> Result<Vec<AssistantVersion>, StoreError> {
    let all = assistant_version::Entity::find()
        .filter(assistant_version::Column::AssistantId.eq(id.to_string()));
    let all = all.order_by_desc(assistant_version::Column::Version);
    if query.metadata.is_empty() {
        let rows = read(
            all.limit(query.limit as u64)
                .offset(query.offset as u64)
                .all(db)
                .await,
        )?;
        return Ok(rows
            .into_iter()
            .filter_map(|row| readable(version(row)))
            .collect());
    }
    let (mut found, mut before) = (Vec::new(), i64::MAX);
    while found.len() < query.offset.saturating_add(query.limit) {
        let older = all
            .clone()
            .filter(assistant_version::Column::Version.lt(before))
            .limit(PAGE);
        let rows = read(older.all(db).await)?;
        let Some(last) = rows.last() else { break };
        before = last.version;
        let versions = rows.into_iter().filter_map(|row| readable(version(row)));
        found.extend(
            versions.filter(|version| contains(&version.content.metadata, &query.metadata)),
        );
    }
    Ok(found
        .into_iter()
        .skip(query.offset)
        .take(query.limit)
        .collect())
}

fn ordered(
    select: Select<assistant::Entity>,
    search: &AssistantSearch,
    db: &DatabaseConnection,
) -> Select<assistant::Entity> {
    let order = || {
        if search.ascending {
            Order::Asc
        } else {
            Order::Desc
        }
    };
    // Sorts text by its bytes, independent of the database's locale.
    let text = |column: assistant::Column| match db.get_database_backend() {
        DbBackend::Postgres => Expr::cust_with_expr("$1 COLLATE \"C\"", Expr::col(column)),
        _ => SimpleExpr::from(Expr::col(column)),
    };
    let select = match search.sort_by {
        AssistantSort::CreatedAt => select.order_by(assistant::Column::CreatedAt, order()),
        AssistantSort::UpdatedAt => select.order_by(assistant::Column::UpdatedAt, order()),
        AssistantSort::Name => select.order_by(text(assistant::Column::Name), order()),
        AssistantSort::Graph => select.order_by(text(assistant::Column::GraphId), order()),
        AssistantSort::Id => select,
    };
    select.order_by(text(assistant::Column::AssistantId), order())
}

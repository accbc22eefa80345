//! Which assistants and which of their versions, in which order.

use deerflow_domain::assistants::{
    Assistant, AssistantSearch, AssistantSort, AssistantVersion, VersionQuery,
};
use deerflow_domain::containment::contains;
use harness::runtime::actor_context::Owner;
use harness::runtime::runs::store::StoreError;
use sea_orm::sea_query::{Expr, SimpleExpr};
use sea_orm::{
    ColumnTrait, DatabaseConnection, DbBackend, EntityTrait, Order, PaginatorTrait, QueryFilter,
    QueryOrder, QuerySelect, Select,
};
use uuid::Uuid;

use super::row::{readable, record, version};
use crate::entity::{assistant, assistant_version, plain};
use crate::error::read;
use crate::runs::from_json;

/// Rows that one statement names.
const PER_SELECT: usize = 1_000;
/// Versions read at a time while a filter looks for matches.
const PAGE: u64 = 100;

/// The owner's assistants.
pub(super) fn owned(
    select: Select<assistant::Entity>,
    owner: &Owner,
) -> Result<Select<assistant::Entity>, StoreError> {
    Ok(match owner.resolve()? {
        Some(user) => select.filter(assistant::Column::UserId.eq(user)),
        None => select,
    })
}

/// A page of what matches.
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
            let wanted = ordered(assistant::Entity::find(), search, db)
                .filter(assistant::Column::AssistantId.is_in(some));
            rows.extend(read(wanted.all(db).await)?);
        }
        rows
    };
    Ok(rows
        .into_iter()
        .filter_map(|row| readable(record(row)))
        .collect())
}

/// How many match, limit and offset aside.
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

/// Whether the database alone can tell what matches; names and metadata are looked into here.
fn is_indexed(search: &AssistantSearch) -> bool {
    search.name.is_none() && search.metadata.is_empty()
}

/// The ids of those that match, in the order of `select`: of the others nothing but names and metadata is read.
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
            .inspect_err(|error| tracing::error!(id, error, "an assistant is left out of a list"))
            .ok()?;
        search.describes(&name, &metadata).then_some(id)
    };
    Ok(rows.into_iter().filter_map(matches).collect())
}

/// What the database can tell of the filters.
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

/// A page of an assistant's versions, newest first. Where metadata is asked for, no more is read than until the page is full.
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
    // Text by its bytes, whatever the language of the database.
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

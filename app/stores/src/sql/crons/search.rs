//! Searches for a user's crons.

use deerflow_domain::crons::{Cron, CronSearch, CronSort};
use deerflow_runtime::runs::store::StoreError;
use sea_orm::sea_query::{Expr, NullOrdering, SimpleExpr};
use sea_orm::{
    ColumnTrait, DatabaseConnection, DbBackend, Order, PaginatorTrait, QueryFilter, QueryOrder,
    QuerySelect, Select,
};

use super::row::{of_user, readable};
use crate::db::entity::{cron, plain};
use crate::db::error::read;
use crate::db::json::from_json;

/// Maximum number of ids in one statement.
const PER_SELECT: usize = 1_000;

/// Returns a page of matching crons.
pub(super) async fn search(
    db: &DatabaseConnection,
    user: &str,
    search: &CronSearch,
) -> Result<Vec<Cron>, StoreError> {
    let select = ordered(indexed(user, search), search, db);
    let rows = if search.metadata.is_empty() {
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
            rows.extend(read(
                ordered(of_user(user), search, db)
                    .filter(cron::Column::CronId.is_in(some))
                    .all(db)
                    .await,
            )?);
        }
        rows
    };
    Ok(rows.into_iter().filter_map(readable).collect())
}

/// Counts all matching crons, ignoring limit and offset.
pub(super) async fn count(
    db: &DatabaseConnection,
    user: &str,
    search: &CronSearch,
) -> Result<u64, StoreError> {
    let select = indexed(user, search);
    if search.metadata.is_empty() {
        return read(select.count(db).await);
    }
    Ok(matching(db, select, search).await?.len() as u64)
}

/// Returns the ids of crons with matching metadata, in the order of `select`. Reads only the
/// metadata.
async fn matching(
    db: &DatabaseConnection,
    select: Select<cron::Entity>,
    search: &CronSearch,
) -> Result<Vec<String>, StoreError> {
    let columns = [cron::Column::CronId, cron::Column::MetadataJson];
    let rows: Vec<(String, String)> = read(
        select
            .select_only()
            .columns(columns)
            .into_tuple()
            .all(db)
            .await,
    )?;
    let matches = |(id, metadata): (String, String)| {
        let metadata = from_json(&metadata)
            .inspect_err(|error| tracing::error!(id, error, "a cron is damaged, omitted"))
            .ok()?;
        search.metadata_matches(&metadata).then_some(id)
    };
    Ok(rows.into_iter().filter_map(matches).collect())
}

/// Builds a query with the filters that the database can evaluate.
fn indexed(user: &str, search: &CronSearch) -> Select<cron::Entity> {
    let mut select = of_user(user);
    if let Some(thread) = &search.thread_id {
        select = select.filter(cron::Column::ThreadId.eq(thread.as_str()));
    }
    if let Some(assistant) = &search.assistant_id {
        select = select.filter(cron::Column::AssistantId.eq(plain(assistant)));
    }
    if let Some(enabled) = search.enabled {
        select = select.filter(cron::Column::Enabled.eq(enabled));
    }
    select
}

/// Sorts the query. Nulls are smallest; ties are sorted by id, greatest first.
fn ordered(
    select: Select<cron::Entity>,
    search: &CronSearch,
    db: &DatabaseConnection,
) -> Select<cron::Entity> {
    // Sorts text by its bytes, independent of the database's locale.
    let text = |column: cron::Column| match db.get_database_backend() {
        DbBackend::Postgres => Expr::cust_with_expr("$1 COLLATE \"C\"", Expr::col(column)),
        _ => SimpleExpr::from(Expr::col(column)),
    };
    let plain = |column: cron::Column| SimpleExpr::from(Expr::col(column));
    let by = match search.sort_by {
        CronSort::CreatedAt => plain(cron::Column::CreatedAt),
        CronSort::UpdatedAt => plain(cron::Column::UpdatedAt),
        CronSort::NextRunDate => plain(cron::Column::NextRunDate),
        CronSort::EndTime => plain(cron::Column::EndTime),
        CronSort::CronId => text(cron::Column::CronId),
        CronSort::AssistantId => text(cron::Column::AssistantId),
        CronSort::ThreadId => text(cron::Column::ThreadId),
    };
    let (order, absent) = if search.ascending {
        (Order::Asc, NullOrdering::First)
    } else {
        (Order::Desc, NullOrdering::Last)
    };
    select
        .order_by_with_nulls(by, order, absent)
        .order_by(text(cron::Column::CronId), Order::Desc)
}

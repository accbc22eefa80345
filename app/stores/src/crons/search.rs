//! Which of a user's crons, in which order.

use deerflow_domain::crons::{Cron, CronSearch, CronSort};
use harness::runtime::runs::store::StoreError;
use sea_orm::sea_query::{Expr, NullOrdering, SimpleExpr};
use sea_orm::{
    ColumnTrait, DatabaseConnection, DbBackend, Order, PaginatorTrait, QueryFilter, QueryOrder,
    QuerySelect, Select,
};

use super::{of, readable};
use crate::entity::{cron, plain};
use crate::error::read;
use crate::runs::from_json;

/// Rows that one statement names.
const PER_SELECT: usize = 1_000;

/// A page of what matches.
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
                ordered(of(user), search, db)
                    .filter(cron::Column::CronId.is_in(some))
                    .all(db)
                    .await,
            )?);
        }
        rows
    };
    Ok(rows.into_iter().filter_map(readable).collect())
}

/// How many match, limit and offset aside.
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

/// The ids of those whose metadata matches, in the order of `select`: of the others nothing else is read.
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
            .inspect_err(|error| tracing::error!(id, error, "a cron is left out"))
            .ok()?;
        search.describes(&metadata).then_some(id)
    };
    Ok(rows.into_iter().filter_map(matches).collect())
}

/// What the database can tell of the filters.
fn indexed(user: &str, search: &CronSearch) -> Select<cron::Entity> {
    let mut select = of(user);
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

/// What is absent is smallest; ties go to the greater id.
fn ordered(
    select: Select<cron::Entity>,
    search: &CronSearch,
    db: &DatabaseConnection,
) -> Select<cron::Entity> {
    // Text by its bytes, whatever the language of the database.
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

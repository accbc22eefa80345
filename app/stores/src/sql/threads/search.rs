//! Thread search.
//!
//! A search walks an index in the requested order and stops when the page is full. That is slow if
//! few threads match, so the filters that an index can answer are queried first: if one of them
//! matches only few threads, the search starts from those.

use std::collections::HashMap;

use deerflow_core::actor_context::Owner;
use deerflow_domain::containment::{contains, facts_are_sufficient};
use deerflow_domain::threads::{ThreadRecord, ThreadSearch};
use deerflow_runtime::runs::store::StoreError;
use sea_orm::{
    ColumnTrait, DatabaseConnection, EntityTrait, PaginatorTrait, QueryFilter, QuerySelect,
    QueryTrait, Select,
};

use super::filters::Filters;
use super::order::ordered;
use super::row::records;
use crate::db::entity::thread;
use crate::db::error::read;
use crate::sql::checkpoints::newest_channels;

/// Number of threads that are compared at a time if the database cannot decide alone.
const PAGE: usize = 500;

/// Restricts a query to the threads of a user, if there is one.
pub(super) fn of_user(
    select: Select<thread::Entity>,
    user: Option<&str>,
) -> Select<thread::Entity> {
    match user {
        Some(user) => select.filter(thread::Column::UserId.eq(user)),
        None => select,
    }
}

/// Returns a page of matching threads.
pub(super) async fn search(
    db: &DatabaseConnection,
    search: &ThreadSearch,
    owner: &Owner,
) -> Result<Vec<ThreadRecord>, StoreError> {
    let filters = Filters::of(search, owner, db)?;
    let few = filters.narrowest(db).await?;
    let matching = filters.matching(few.as_deref());
    if !decided_by_index(search) {
        let matches = verified(
            db,
            search,
            ordered(matching, search),
            search.offset + search.limit,
        )
        .await?;
        return Ok(matches.into_iter().skip(search.offset).collect());
    }
    if few.is_none() && filters.may_scan_head() {
        let page = read(page(filters.head_of_order(), search).all(db).await)?;
        if page.len() == search.limit {
            return Ok(records(page));
        }
    }
    read(page(matching, search).all(db).await).map(records)
}

/// Builds the query for a page. The rows before it are only skipped in an index, and the rows of
/// the page are looked up afterwards.
fn page(matching: Select<thread::Entity>, search: &ThreadSearch) -> Select<thread::Entity> {
    let page = ordered(matching, search).limit(search.limit as u64);
    if search.offset == 0 {
        return page;
    }
    let ids = page
        .offset(search.offset as u64)
        .select_only()
        .column(thread::Column::ThreadId);
    ordered(
        thread::Entity::find().filter(thread::Column::ThreadId.in_subquery(ids.into_query())),
        search,
    )
}

/// Counts the matching threads.
pub(super) async fn count(
    db: &DatabaseConnection,
    search: &ThreadSearch,
    owner: &Owner,
) -> Result<u64, StoreError> {
    let filters = Filters::of(search, owner, db)?;
    if !decided_by_index(search) {
        let matching = ordered(
            filters.matching(filters.narrowest(db).await?.as_deref()),
            search,
        );
        return Ok(verified(db, search, matching, usize::MAX).await?.len() as u64);
    }
    match filters.only_fact() {
        Some(fact) => read(fact.count(db).await),
        None => read(
            filters
                .matching(filters.narrowest(db).await?.as_deref())
                .count(db)
                .await,
        ),
    }
}

/// Returns `true` if the database's filters are exact for this search.
fn decided_by_index(search: &ThreadSearch) -> bool {
    search.values.is_empty() && facts_are_sufficient(&search.metadata)
}

/// Returns the first `limit` candidates that match after a comparison of their metadata and values.
async fn verified(
    db: &DatabaseConnection,
    search: &ThreadSearch,
    candidates: Select<thread::Entity>,
    limit: usize,
) -> Result<Vec<ThreadRecord>, StoreError> {
    let ids: Vec<String> = read(
        candidates
            .select_only()
            .column(thread::Column::ThreadId)
            .into_tuple()
            .all(db)
            .await,
    )?;
    let mut matches = Vec::new();
    for some in ids.chunks(PAGE) {
        let rows = thread::Entity::find()
            .filter(thread::Column::ThreadId.is_in(some))
            .all(db)
            .await;
        let mut by_id: HashMap<String, ThreadRecord> = read(rows)
            .map(records)?
            .into_iter()
            .map(|record| (record.thread_id.to_string(), record))
            .collect();
        let values = if search.values.is_empty() {
            HashMap::new()
        } else {
            newest_channels(db, some).await?
        };
        let has_values = |id: &str| {
            search.values.is_empty()
                || values
                    .get(id)
                    .is_some_and(|channels| contains(channels, &search.values))
        };
        for id in some {
            let Some(record) = by_id.remove(id) else {
                continue;
            };
            if has_values(id) && contains(&record.metadata, &search.metadata) {
                matches.push(record);
            }
            if matches.len() == limit {
                return Ok(matches);
            }
        }
    }
    Ok(matches)
}

/// Returns the query of a page, to explain its plan.
#[cfg(test)]
async fn statement(
    db: &DatabaseConnection,
    search: &ThreadSearch,
    owner: &Owner,
) -> Result<sea_orm::Statement, StoreError> {
    let filters = Filters::of(search, owner, db)?;
    Ok(page(
        filters.matching(filters.narrowest(db).await?.as_deref()),
        search,
    )
    .build(db.get_database_backend()))
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;

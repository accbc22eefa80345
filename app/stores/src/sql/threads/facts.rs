//! Facts: a thread's metadata as indexed rows.

use std::collections::HashSet;

use deerflow_domain::containment::{Fact, facts};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, ExprTrait, IntoActiveModel, QueryFilter,
    QueryOrder, QuerySelect,
};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::db::entity::{thread, thread_fact};
use crate::sql::runs::from_json;

/// Maximum number of stored facts per thread. Searches do not find the others.
const MAX_FACTS: usize = 1_000;
/// Longer values are stored as a digest: an index entry of Postgres has at most 2,700 bytes.
const MAX_VALUE_BYTES: usize = 256;
/// Rows per statement, far below the limits of both databases.
const ROWS_PER_INSERT: usize = 500;
/// Number of threads that are indexed at a time.
const PAGE: u64 = 500;

/// UUID namespace of the digests.
const DIGEST_NAMESPACE: Uuid = Uuid::from_u128(0x6e15_5a5f_54d0_4f3b_9a52_0a4f_5e1d_2c77);

/// Returns path and value as stored. The path is already bounded.
pub(super) fn stored(fact: Fact) -> (String, String) {
    (fact.path, bounded(fact.value))
}

fn bounded(text: String) -> String {
    if text.len() <= MAX_VALUE_BYTES {
        text
    } else {
        format!("#{}", Uuid::new_v5(&DIGEST_NAMESPACE, text.as_bytes()))
    }
}

/// Returns the stored facts of metadata.
fn fact_set(metadata: &Map<String, Value>) -> HashSet<(String, String)> {
    facts(metadata, MAX_FACTS).into_iter().map(stored).collect()
}

/// Inserts the facts that a metadata change adds, and deletes those that it removes.
pub(super) async fn write(
    db: &impl ConnectionTrait,
    thread: &thread::Model,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> Result<(), DbErr> {
    let (before, after) = (fact_set(before), fact_set(after));
    let removed: Vec<_> = before.difference(&after).collect();
    if !removed.is_empty() {
        let paths = removed.iter().map(|(path, _)| path.as_str());
        let of_paths = thread_fact::Column::ThreadId
            .eq(thread.thread_id.as_str())
            .and(thread_fact::Column::Path.is_in(paths));
        thread_fact::Entity::delete_many()
            .filter(of_paths)
            .exec(db)
            .await?;
    }
    let removed: HashSet<&str> = removed.iter().map(|(path, _)| path.as_str()).collect();
    let new = after
        .iter()
        .filter(|fact| !before.contains(*fact) || removed.contains(fact.0.as_str()));
    insert(
        db,
        new.map(|(path, value)| row(thread, path.clone(), value.clone()))
            .collect(),
    )
    .await
}

fn row(thread: &thread::Model, path: String, value: String) -> thread_fact::Model {
    thread_fact::Model {
        thread_id: thread.thread_id.clone(),
        path,
        value,
        user_id: thread.user_id.clone(),
    }
}

async fn insert(db: &impl ConnectionTrait, mut rows: Vec<thread_fact::Model>) -> Result<(), DbErr> {
    while !rows.is_empty() {
        let rest = rows.split_off(rows.len().min(ROWS_PER_INSERT));
        let some = rows.into_iter().map(IntoActiveModel::into_active_model);
        thread_fact::Entity::insert_many(some)
            .exec_without_returning(db)
            .await?;
        rows = rest;
    }
    Ok(())
}

/// Inserts the facts of all threads into an empty table.
pub(crate) async fn index_all(db: &impl ConnectionTrait) -> Result<(), DbErr> {
    let mut last = String::new();
    loop {
        let page: Vec<(String, Option<String>, String)> = thread::Entity::find()
            .select_only()
            .columns([
                thread::Column::ThreadId,
                thread::Column::UserId,
                thread::Column::MetadataJson,
            ])
            .filter(thread::Column::ThreadId.gt(last.as_str()))
            .order_by_asc(thread::Column::ThreadId)
            .limit(PAGE)
            .into_tuple()
            .all(db)
            .await?;
        let mut rows = Vec::new();
        for (thread_id, user_id, metadata) in &page {
            // Searches by metadata do not return an unreadable thread; the migration leaves it
            // unchanged.
            let metadata = from_json(metadata).inspect_err(|error| {
                tracing::error!(thread_id, error, "a thread's metadata is damaged")
            });
            let facts = fact_set(&metadata.unwrap_or_default());
            let row = |(path, value)| thread_fact::Model {
                thread_id: thread_id.clone(),
                path,
                value,
                user_id: user_id.clone(),
            };
            rows.extend(facts.into_iter().map(row));
        }
        insert(db, rows).await?;
        match page.into_iter().next_back() {
            Some((thread_id, ..)) => last = thread_id,
            None => return Ok(()),
        }
    }
}

//! A thread's metadata as rows that an index finds.

use std::collections::HashSet;

use deerflow_domain::containment::{Fact, facts};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, ExprTrait, IntoActiveModel, QueryFilter,
    QueryOrder, QuerySelect,
};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::entity::{thread, thread_fact};
use crate::runs::from_json;

/// The most facts of one thread that are kept. What is beyond them is not found by a search.
const MOST_FACTS: usize = 1_000;
/// Longer texts are kept as a digest: an index of Postgres takes no more than 2,700 bytes.
const LONGEST: usize = 256;
/// Rows per statement, far below the limits of both databases.
const ROWS_PER_INSERT: usize = 500;
/// Threads that are indexed at a time.
const PAGE: u64 = 500;

/// The namespace of digests.
const DIGESTS: Uuid = Uuid::from_u128(0x6e15_5a5f_54d0_4f3b_9a52_0a4f_5e1d_2c77);

/// A fact as it is stored. Its path is bounded already.
pub(super) fn stored(fact: Fact) -> (String, String) {
    (fact.path, bounded(fact.value))
}

fn bounded(text: String) -> String {
    if text.len() <= LONGEST {
        text
    } else {
        format!("#{}", Uuid::new_v5(&DIGESTS, text.as_bytes()))
    }
}

/// The facts of a thread's metadata as they are stored.
fn known(metadata: &Map<String, Value>) -> HashSet<(String, String)> {
    facts(metadata, MOST_FACTS)
        .into_iter()
        .map(stored)
        .collect()
}

/// Writes what became true of a thread when its metadata changed, and removes what is not true any more.
pub(super) async fn write(
    db: &impl ConnectionTrait,
    thread: &thread::Model,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> Result<(), DbErr> {
    let (before, after) = (known(before), known(after));
    let gone: Vec<_> = before.difference(&after).collect();
    if !gone.is_empty() {
        let paths = gone.iter().map(|(path, _)| path.as_str());
        let of_paths = thread_fact::Column::ThreadId
            .eq(thread.thread_id.as_str())
            .and(thread_fact::Column::Path.is_in(paths));
        thread_fact::Entity::delete_many()
            .filter(of_paths)
            .exec(db)
            .await?;
    }
    let gone: HashSet<&str> = gone.iter().map(|(path, _)| path.as_str()).collect();
    let new = after
        .iter()
        .filter(|fact| !before.contains(*fact) || gone.contains(fact.0.as_str()));
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

/// Writes the facts of every thread, where there are none yet.
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
            // A thread that cannot be read is not found by its metadata; everything else about it stays as it was.
            let metadata = from_json(metadata).inspect_err(|error| {
                tracing::error!(thread_id, error, "a thread's metadata is damaged")
            });
            let facts = known(&metadata.unwrap_or_default());
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

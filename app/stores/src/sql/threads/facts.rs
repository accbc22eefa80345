//! Writes the facts of a thread: its metadata as indexed rows.

use std::collections::HashSet;

use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, ExprTrait, IntoActiveModel, QueryFilter,
};
use serde_json::{Map, Value};

use crate::db::entity::{thread, thread_fact};
use crate::db::fact_index::fact_set;

/// Rows per statement, far below the limits of both databases.
const ROWS_PER_INSERT: usize = 500;

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

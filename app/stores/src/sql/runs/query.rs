//! Reads of runs.

use async_trait::async_trait;
use bytes::Bytes;
use deerflow_core::actor_context::Owner;
use deerflow_core::ids::{RunId, ThreadId};
use deerflow_runtime::runs::store::{
    RunListQuery, RunQueryStore, StoreError, StoredRunRequest, UnfinishedRun,
};
use deerflow_runtime::runs::{RunRecord, RunStatus};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select};

use super::SqlRunStore;
use super::large_texts::{load, load_one};
use super::row::{record, records};
use super::stored_request::read_request;
use crate::db::connect::Database;
use crate::db::entity::{moment, run};
use crate::db::error::read;
use crate::sql::requests::stored_values;

#[async_trait]
impl RunQueryStore for SqlRunStore {
    async fn get(&self, run: &RunId, owner: &Owner) -> Result<Option<RunRecord>, StoreError> {
        one(
            &self.db,
            owned(run::Entity::find_by_id(run.as_str()), owner)?,
        )
        .await
    }

    async fn list(
        &self,
        thread: &ThreadId,
        query: &RunListQuery,
        owner: &Owner,
    ) -> Result<Vec<RunRecord>, StoreError> {
        newest(of_thread(thread), &self.db, query, owner).await
    }

    async fn active(&self, thread: &ThreadId) -> Result<Option<RunRecord>, StoreError> {
        // Descending by status: an owned run sorts before a pending one.
        let first = of_thread(thread)
            .filter(run::is_active())
            .order_by_desc(run::Column::Status)
            .order_by_desc(run::was_released());
        let first = first
            .order_by_asc(run::Column::CreatedAt)
            .order_by_asc(run::Column::RunId);
        one(&self.db, first).await
    }

    async fn kept_values(&self, run: &RunId) -> Result<Option<Bytes>, StoreError> {
        Ok(read(stored_values(self.db.reads(), run).await)?.map(Bytes::from))
    }

    async fn stored_request(&self, run: &RunId) -> Result<Option<StoredRunRequest>, StoreError> {
        let row = run::Entity::find_by_id(run.as_str())
            .one(self.db.reads())
            .await;
        let row = read(load_one(self.db.reads(), read(row)?).await)?;
        let Some((Some(request), echo)) = row.map(|row| (row.recipe_json, row.kwargs_json)) else {
            return Ok(None);
        };
        let parsed = read_request(&request, &echo);
        parsed.map(Some).map_err(|reason| {
            StoreError::Failed(format!("the request of run {run} is damaged: {reason}"))
        })
    }

    async fn standing(
        &self,
        thread: Option<&ThreadId>,
        owner: &Owner,
    ) -> Result<Vec<UnfinishedRun>, StoreError> {
        let columns = [
            run::Column::RunId,
            run::Column::ThreadId,
            run::Column::UserId,
            run::Column::Status,
            run::Column::Attempt,
            run::Column::CancelAction,
            run::Column::CreatedAt,
        ];
        let select = owned(thread.map_or_else(run::Entity::find, of_thread), owner)?
            .filter(run::is_active())
            .select_only()
            .columns(columns);
        let select = select
            .order_by_asc(run::Column::CreatedAt)
            .order_by_asc(run::Column::RunId);
        let rows: Vec<UnfinishedRow> = read(select.into_tuple().all(self.db.reads()).await)?;
        Ok(rows.into_iter().filter_map(unfinished).collect())
    }
}

/// Run, thread, user, status, attempt, cancel action, creation time.
type UnfinishedRow = (
    String,
    String,
    Option<String>,
    String,
    i64,
    Option<String>,
    i64,
);

fn unfinished(row: UnfinishedRow) -> Option<UnfinishedRun> {
    let (run, thread, user_id, status, attempt, cancel, created_at) = row;
    let status = RunStatus::parse(&status)?;
    Some(UnfinishedRun {
        run_id: RunId::parse(run).ok()?,
        thread_id: ThreadId::parse(thread).ok()?,
        user_id,
        status,
        cancel_requested: cancel.is_some(),
        was_released: status == RunStatus::Pending && attempt > 1,
        created_at: moment(created_at),
    })
}

/// Returns a page of the runs of all threads.
pub(crate) async fn newest_of_user(
    db: &Database,
    query: &RunListQuery,
    owner: &Owner,
) -> Result<Vec<RunRecord>, StoreError> {
    newest(run::Entity::find(), db, query, owner).await
}

async fn newest(
    from: Select<run::Entity>,
    db: &Database,
    query: &RunListQuery,
    owner: &Owner,
) -> Result<Vec<RunRecord>, StoreError> {
    let page = page(from, query, owner)?;
    let mut rows = read(page.all(db.reads()).await)?;
    read(load(db.reads(), &mut rows).await)?;
    Ok(records(rows))
}

/// Returns the query for a page, newest runs first.
fn page(
    from: Select<run::Entity>,
    query: &RunListQuery,
    owner: &Owner,
) -> Result<Select<run::Entity>, StoreError> {
    let mut select = owned(from, owner)?
        .order_by_desc(run::Column::CreatedAt)
        .order_by_desc(run::Column::RunId)
        .limit(query.limit as u64)
        .offset(query.offset as u64);
    if let Some(status) = query.status {
        let words = RunStatus::ALL
            .into_iter()
            .filter(|other| other.wire() == status.wire())
            .map(RunStatus::as_str);
        select = select.filter(run::Column::Status.is_in(words));
    }
    Ok(select)
}

/// Returns the first run.
async fn one(db: &Database, select: Select<run::Entity>) -> Result<Option<RunRecord>, StoreError> {
    let row = read(select.one(db.reads()).await)?;
    let row = load_one(db.reads(), row).await;
    read(row.and_then(|row| row.map(record).transpose()))
}

fn of_thread(thread: &ThreadId) -> Select<run::Entity> {
    run::Entity::find().filter(run::Column::ThreadId.eq(thread.as_str()))
}

fn owned(select: Select<run::Entity>, owner: &Owner) -> Result<Select<run::Entity>, StoreError> {
    Ok(match owner.resolve()? {
        Some(user) => select.filter(run::Column::UserId.eq(user)),
        None => select,
    })
}

#[cfg(test)]
mod tests {
    use deerflow_core::tasks::Tasks;
    use sea_orm::{ConnectionTrait, QueryTrait, Statement};

    use super::*;
    use crate::DatabaseConfig;

    async fn plan(db: &Database, query: &Select<run::Entity>) -> Vec<String> {
        let statement = query.build(db.reads().get_database_backend());
        let explain = Statement {
            sql: format!("EXPLAIN QUERY PLAN {}", statement.sql),
            ..statement
        };
        let rows = db.reads().query_all_raw(explain).await.unwrap();
        rows.iter()
            .map(|row| row.try_get("", "detail").unwrap())
            .collect()
    }

    #[tokio::test]
    async fn runs_of_a_thread_are_found_by_the_thread() {
        let tasks = Tasks::new();
        let db = Database::open(&DatabaseConfig::Memory, &tasks)
            .await
            .unwrap();
        let thread = ThreadId::parse("t").unwrap();
        for owner in [Owner::User("ann".to_owned()), Owner::None] {
            for status in [None, Some(RunStatus::Success)] {
                let query = RunListQuery {
                    limit: 10,
                    offset: 0,
                    status,
                };
                let page = page(of_thread(&thread), &query, &owner).unwrap();
                assert_eq!(
                    plan(&db, &page).await,
                    ["SEARCH runs USING INDEX runs_by_thread (thread_id=?)"]
                );
            }
        }
    }

    #[tokio::test]
    async fn active_runs_of_a_thread_are_found_without_others() {
        let tasks = Tasks::new();
        let db = Database::open(&DatabaseConfig::Memory, &tasks)
            .await
            .unwrap();
        let active = of_thread(&ThreadId::parse("t").unwrap()).filter(run::is_active());
        assert_eq!(
            plan(&db, &active).await,
            ["SEARCH runs USING INDEX runs_unfinished_by_thread (thread_id=?)"]
        );
    }
}

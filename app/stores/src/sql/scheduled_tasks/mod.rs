//! Task store over SQL.

mod changes;
mod row;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_core::ids::ThreadId;
use deerflow_domain::scheduled_tasks::{
    Begun, Firing, ScheduledTask, TaskCreated, TaskRun, TaskStatus, TaskStore, TaskUpdated,
};
use deerflow_runtime::runs::store::StoreError;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select};

use self::changes::{ACTIVE, OWNER};
use self::row::{readable, run_of, task_of};
use crate::db::connect::Database;
use crate::db::entity::{micros, plain, scheduled_task, scheduled_task_run};
use crate::db::error::read;
use crate::sql::accounts::owner_is_enabled;

/// Task store over SQL.
#[derive(Debug, Clone)]
pub struct SqlTaskStore {
    db: Database,
}

impl SqlTaskStore {
    /// Creates a store over `db`.
    pub fn new(db: Database) -> Self {
        Self { db }
    }
}

#[async_trait]
impl TaskStore for SqlTaskStore {
    async fn create(&self, task: ScheduledTask, limit: u64) -> Result<TaskCreated, StoreError> {
        self.db
            .writes()
            .create((task, limit), changes::create)
            .await
    }

    async fn get(&self, user: &str, task: &str) -> Result<Option<ScheduledTask>, StoreError> {
        let row = of_user(user)
            .filter(scheduled_task::Column::TaskId.eq(plain(task)))
            .one(self.db.reads())
            .await;
        read(read(row)?.map(task_of).transpose())
    }

    async fn list(
        &self,
        user: &str,
        thread: Option<&ThreadId>,
    ) -> Result<Vec<ScheduledTask>, StoreError> {
        let mut select = of_user(user)
            .order_by_desc(scheduled_task::Column::CreatedAt)
            .order_by_desc(scheduled_task::Column::TaskId);
        if let Some(thread) = thread {
            select = select.filter(scheduled_task::Column::ThreadId.eq(thread.as_str()));
        }
        Ok(readable(read(select.all(self.db.reads()).await)?, task_of))
    }

    async fn update(&self, task: ScheduledTask) -> Result<TaskUpdated, StoreError> {
        self.db.writes().create(task, changes::update).await
    }

    async fn delete(&self, user: &str, task: &str) -> Result<bool, StoreError> {
        self.db
            .writes()
            .release((plain(user), plain(task)), changes::delete)
            .await
    }

    async fn due(&self, at: DateTime<Utc>, limit: usize) -> Result<Vec<ScheduledTask>, StoreError> {
        let select = scheduled_task::Entity::find()
            .filter(scheduled_task::Column::Status.eq(TaskStatus::Enabled.as_str()))
            .filter(scheduled_task::Column::NextRunAt.lte(micros(at)))
            .filter(owner_is_enabled(OWNER))
            .order_by_asc(scheduled_task::Column::NextRunAt)
            .order_by_asc(scheduled_task::Column::TaskId)
            .limit(limit as u64);
        Ok(readable(read(select.all(self.db.reads()).await)?, task_of))
    }

    async fn begin(&self, run: TaskRun, firing: Option<Firing>) -> Result<Begun, StoreError> {
        self.db
            .writes()
            .create((run, firing), changes::store_firing)
            .await
    }

    async fn advance(&self, seen: &TaskRun, run: TaskRun) -> Result<bool, StoreError> {
        self.db
            .writes()
            .run((seen.clone(), run), changes::store_progress)
            .await
    }

    async fn active(&self, task: Option<&str>, limit: usize) -> Result<Vec<TaskRun>, StoreError> {
        let mut select = active_runs()
            .order_by_asc(scheduled_task_run::Column::ClaimedAt)
            .order_by_asc(scheduled_task_run::Column::TaskRunId)
            .limit(limit as u64);
        if let Some(task) = task {
            select = select.filter(scheduled_task_run::Column::TaskId.eq(plain(task)));
        }
        Ok(readable(read(select.all(self.db.reads()).await)?, run_of))
    }

    async fn active_of(&self, user: &str) -> Result<Vec<TaskRun>, StoreError> {
        let select = active_runs().filter(scheduled_task_run::Column::UserId.eq(plain(user)));
        Ok(readable(read(select.all(self.db.reads()).await)?, run_of))
    }

    async fn runs(
        &self,
        task: &str,
        limit: usize,
        offset: usize,
    ) -> Result<Vec<TaskRun>, StoreError> {
        let select = scheduled_task_run::Entity::find()
            .filter(scheduled_task_run::Column::TaskId.eq(plain(task)))
            .order_by_desc(scheduled_task_run::Column::CreatedAt)
            .order_by_desc(scheduled_task_run::Column::TaskRunId)
            .limit(limit as u64)
            .offset(offset as u64);
        Ok(readable(read(select.all(self.db.reads()).await)?, run_of))
    }
}

fn of_user(user: &str) -> Select<scheduled_task::Entity> {
    scheduled_task::Entity::find().filter(scheduled_task::Column::UserId.eq(plain(user)))
}

fn active_runs() -> Select<scheduled_task_run::Entity> {
    scheduled_task_run::Entity::find().filter(scheduled_task_run::Column::Status.is_in(ACTIVE))
}

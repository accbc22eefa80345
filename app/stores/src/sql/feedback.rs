//! Feedback store over SQL.

use async_trait::async_trait;
use deerflow_core::actor_context::Owner;
use deerflow_core::ids::{RunId, ThreadId};
use deerflow_domain::branches::is_copied_run;
use deerflow_domain::feedback::{Feedback, FeedbackStore, Rating};
use deerflow_runtime::runs::store::StoreError;
use sea_orm::sea_query::OnConflict;
use sea_orm::{
    ColumnTrait, Condition, DatabaseTransaction, DbErr, EntityTrait, IntoActiveModel, QueryFilter,
    QueryOrder, QuerySelect,
};

use crate::db::connect::Database;
use crate::db::entity::{feedback, micros, moment, plain, run, thread};
use crate::db::error::read;
use crate::db::tx::TxFuture;

/// Feedback store over SQL.
#[derive(Debug, Clone)]
pub struct SqlFeedbackStore {
    db: Database,
}

impl SqlFeedbackStore {
    /// Creates a store over `db`.
    pub fn new(db: Database) -> Self {
        Self { db }
    }
}

#[async_trait]
impl FeedbackStore for SqlFeedbackStore {
    async fn put(&self, feedback: Feedback) -> Result<Option<Feedback>, StoreError> {
        self.db.writes().create(feedback, put).await
    }

    async fn list(
        &self,
        thread: &ThreadId,
        run: Option<&RunId>,
        owner: &Owner,
    ) -> Result<Vec<Feedback>, StoreError> {
        let rows = feedback::Entity::find()
            .filter(matching(thread, run, owner.resolve()?.as_deref()))
            .order_by_asc(feedback::Column::CreatedAt)
            .order_by_asc(feedback::Column::FeedbackId)
            .all(self.db.reads())
            .await;
        Ok(read(rows)?.into_iter().filter_map(readable).collect())
    }

    async fn delete(
        &self,
        thread: &ThreadId,
        run: &RunId,
        id: Option<&str>,
        owner: &Owner,
    ) -> Result<bool, StoreError> {
        let mut unwanted = matching(thread, Some(run), owner.resolve()?.as_deref());
        if let Some(id) = id {
            unwanted = unwanted.add(feedback::Column::FeedbackId.eq(id));
        }
        self.db.writes().release(unwanted, delete).await
    }
}

fn matching(thread: &ThreadId, run: Option<&RunId>, user: Option<&str>) -> Condition {
    Condition::all()
        .add(feedback::Column::ThreadId.eq(thread.as_str()))
        .add_option(run.map(|run| feedback::Column::RunId.eq(run.as_str())))
        .add_option(user.map(|user| feedback::Column::UserId.eq(user)))
}

fn put<'a>(tx: &'a DatabaseTransaction, given: &'a Feedback) -> TxFuture<'a, Option<Feedback>> {
    Box::pin(async move {
        if !has_run(tx, given).await? {
            return Ok(None);
        }
        let row = row(given);
        let key = (
            row.thread_id.clone(),
            row.run_id.clone(),
            row.user_id.clone(),
        );
        let again = OnConflict::columns([
            feedback::Column::ThreadId,
            feedback::Column::RunId,
            feedback::Column::UserId,
        ])
        .update_columns([
            feedback::Column::MessageId,
            feedback::Column::Rating,
            feedback::Column::Comment,
            feedback::Column::CreatedAt,
        ])
        .to_owned();
        feedback::Entity::insert(row.into_active_model())
            .on_conflict(again)
            .exec_without_returning(tx)
            .await?;
        let stored = feedback::Entity::find_by_id(key)
            .one(tx)
            .await?
            .ok_or(DbErr::RecordNotInserted)?;
        Ok(Some(record(stored)?))
    })
}

/// Reports whether the run exists. The lock prevents its deletion, or that of the thread of a copied
/// run, between the check and the write.
async fn has_run(tx: &DatabaseTransaction, given: &Feedback) -> Result<bool, DbErr> {
    let thread = given.thread_id.as_str();
    if is_copied_run(&given.thread_id, &given.run_id) {
        let row = thread::Entity::find_by_id(thread).lock_shared();
        return Ok(row.one(tx).await?.is_some());
    }
    let row = run::Entity::find_by_id(given.run_id.as_str())
        .filter(run::Column::ThreadId.eq(thread))
        .lock_shared();
    Ok(row.one(tx).await?.is_some())
}

fn delete<'a>(tx: &'a DatabaseTransaction, unwanted: &'a Condition) -> TxFuture<'a, bool> {
    Box::pin(async move {
        Ok(feedback::Entity::delete_many()
            .filter(unwanted.clone())
            .exec(tx)
            .await?
            .rows_affected
            > 0)
    })
}

/// Deletes the feedback of a run, or of a whole thread.
pub(crate) async fn delete_feedback(
    tx: &DatabaseTransaction,
    thread: &str,
    run: Option<&str>,
) -> Result<(), DbErr> {
    let mut unwanted =
        feedback::Entity::delete_many().filter(feedback::Column::ThreadId.eq(thread));
    if let Some(run) = run {
        unwanted = unwanted.filter(feedback::Column::RunId.eq(run));
    }
    unwanted.exec(tx).await.map(drop)
}

fn row(given: &Feedback) -> feedback::Model {
    feedback::Model {
        thread_id: given.thread_id.to_string(),
        run_id: given.run_id.to_string(),
        user_id: given.user_id.clone(),
        feedback_id: given.feedback_id.clone(),
        message_id: given.message_id.as_deref().map(plain),
        rating: given.rating.as_number(),
        comment: given.comment.as_deref().map(plain),
        created_at: micros(given.created_at),
    }
}

fn record(row: feedback::Model) -> Result<Feedback, DbErr> {
    let damaged =
        |reason: String| DbErr::Type(format!("feedback {} is damaged: {reason}", row.feedback_id));
    Ok(Feedback {
        thread_id: ThreadId::parse(row.thread_id.as_str())
            .map_err(|error| damaged(error.to_string()))?,
        run_id: RunId::parse(row.run_id.as_str()).map_err(|error| damaged(error.to_string()))?,
        rating: Rating::from_number(row.rating)
            .ok_or_else(|| damaged(format!("the rating is {}", row.rating)))?,
        feedback_id: row.feedback_id,
        user_id: row.user_id,
        message_id: row.message_id,
        comment: row.comment,
        created_at: moment(row.created_at),
    })
}

/// Returns `None` for an unreadable row, so that it does not hide the others.
fn readable(row: feedback::Model) -> Option<Feedback> {
    record(row)
        .inspect_err(|error| tracing::error!(%error, "feedback is damaged, omitted from a list"))
        .ok()
}

//! Creation of a branch within a transaction: row, checkpoints, log and journal.

use deerflow_domain::branches::{CHANNELS_OF_ORIGINAL, NewBranch};
use deerflow_domain::threads::{Created, ThreadRecord};
use deerflow_runtime::runs::store::StoreError;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, DatabaseTransaction, DbErr, EntityTrait, QueryFilter};

use super::row::record;
use super::write::{CreateRefusal, create};
use crate::db::entity::{short_title, thread};
use crate::db::quotas::QuotaCheck;
use crate::db::statement_batch::StatementBatch;
use crate::db::tx::TxError;
use crate::sql::checkpoints::{LineEnd, checkpoint_exists, copy_line, finish_line};
use crate::sql::run_events::add_events;

/// A branch, and whether its journal is in the database.
#[derive(Debug)]
pub(super) struct BranchWork {
    pub(super) branch: NewBranch,
    pub(super) with_events: bool,
    pub(super) check: QuotaCheck,
}

/// Creates the branch. The row of the original is locked, so that it is not deleted meanwhile.
pub(super) async fn branch(
    tx: &DatabaseTransaction,
    work: &BranchWork,
) -> Result<Option<ThreadRecord>, TxError<StoreError>> {
    let new = &work.branch;
    let user = new.thread.user_id.as_deref();
    if thread::locked(tx, &new.original, user).await?.is_none()
        || !checkpoint_exists(tx, &new.original, &new.checkpoint).await?
    {
        return Ok(None);
    }
    create_row(tx, new, &work.check).await?;
    let id = &new.thread.thread_id;
    copy_line(tx, &new.original, &new.checkpoint, id).await?;
    let end = LineEnd {
        without: &CHANNELS_OF_ORIGINAL,
        title: new.title.as_deref(),
        metadata: &new.metadata,
    };
    finish_line(tx, id, &new.checkpoint, &end).await?;
    if work.with_events && !new.events.is_empty() {
        let mut statements = StatementBatch::new(tx);
        add_events(&mut statements, &new.events);
        statements.run(tx).await?;
    }
    let row = thread::Entity::find_by_id(id.as_str()).one(tx).await?;
    let row = row.ok_or_else(|| DbErr::RecordNotFound(format!("branch {id}")))?;
    Ok(Some(record(row)?))
}

async fn create_row(
    tx: &DatabaseTransaction,
    new: &NewBranch,
    check: &QuotaCheck,
) -> Result<(), TxError<StoreError>> {
    let taken = || StoreError::Failed("a new thread id is already in use".to_owned());
    match create(tx, &new.thread, check).await {
        Ok(Created::New(_)) => {}
        Ok(_) | Err(TxError::Refused(CreateRefusal::Found(_))) => {
            return Err(TxError::Refused(taken()));
        }
        Err(TxError::Refused(CreateRefusal::Failed(error))) => return Err(TxError::Refused(error)),
        Err(TxError::Db(failure)) => return Err(TxError::Db(failure)),
    }
    let title = new.title.as_deref().map(short_title);
    thread::Entity::update_many()
        .col_expr(thread::Column::DisplayName, Expr::value(title))
        .filter(thread::Column::ThreadId.eq(new.thread.thread_id.as_str()))
        .exec(tx)
        .await?;
    Ok(())
}

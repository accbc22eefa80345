//! Writes of sessions.

use chrono::{DateTime, Utc};
use deerflow_domain::accounts::{Account, AccountError, NewAuditEntry, NewSession, Session};
use sea_orm::sea_query::Expr;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, DatabaseTransaction, DbErr, EntityTrait, IntoActiveModel,
    QueryFilter, QuerySelect,
};
use uuid::Uuid;

use super::audit_row::append;
use super::{account_row, session_row};
use crate::db::entity::{account, micros, session};
use crate::db::tx::TxFuture;

/// Start of a session.
pub(super) struct Start {
    pub(super) new: NewSession,
    pub(super) entry: NewAuditEntry,
}

pub(super) fn start<'a>(
    tx: &'a DatabaseTransaction,
    work: &'a Start,
) -> TxFuture<'a, Result<Account, AccountError>> {
    Box::pin(async move {
        let NewSession {
            session,
            if_password,
        } = &work.new;
        // The lock excludes a change of the account until the session is visible.
        let row = account::Entity::find_by_id(session_row::row(session).user_id)
            .lock_exclusive()
            .one(tx)
            .await?;
        let Some(mut row) = row else {
            return Ok(Err(AccountError::NotFound));
        };
        row.last_login_at = Some(micros(session.created_at));
        let account = account_row::record(row)?;
        if !account.is_enabled() {
            return Ok(Err(AccountError::Disabled));
        }
        if if_password.is_some() && *if_password != account.password_hash {
            return Ok(Err(AccountError::PasswordChanged));
        }
        account::Entity::update_many()
            .col_expr(
                account::Column::LastLoginAt,
                Expr::value(micros(session.created_at)),
            )
            .filter(account::Column::AccountId.eq(account.id.as_str()))
            .exec(tx)
            .await?;
        insert_session(tx, session).await?;
        append(tx, &work.entry).await?;
        Ok(Ok(account))
    })
}

/// Stores a session.
pub(super) async fn insert_session(
    tx: &DatabaseTransaction,
    session: &Session,
) -> Result<(), DbErr> {
    session::Entity::insert(session_row::row(session).into_active_model())
        .exec_without_returning(tx)
        .await
        .map(drop)
}

/// Deletes the sessions of a user, except one; returns their number.
pub(super) async fn end_sessions(
    tx: &DatabaseTransaction,
    user: &str,
    but: Option<Uuid>,
) -> Result<u64, DbErr> {
    let mut delete = session::Entity::delete_many().filter(session::Column::UserId.eq(user));
    if let Some(but) = but {
        delete = delete.filter(session::Column::SessionId.ne(but.to_string()));
    }
    Ok(delete.exec(tx).await?.rows_affected)
}

/// End of all sessions of a user, except one.
pub(super) struct EndAll {
    pub(super) user: String,
    pub(super) but: Option<Uuid>,
    pub(super) entry: NewAuditEntry,
}

pub(super) fn end_all<'a>(tx: &'a DatabaseTransaction, work: &'a EndAll) -> TxFuture<'a, u64> {
    Box::pin(async move {
        let ended = end_sessions(tx, &work.user, work.but).await?;
        if ended > 0 {
            append(tx, &work.entry).await?;
        }
        Ok(ended)
    })
}

/// End of one session of a user.
pub(super) struct End {
    pub(super) user: String,
    pub(super) id: Uuid,
    pub(super) entry: NewAuditEntry,
}

pub(super) fn end<'a>(tx: &'a DatabaseTransaction, work: &'a End) -> TxFuture<'a, bool> {
    Box::pin(async move {
        let deleted = session::Entity::delete_many()
            .filter(session::Column::SessionId.eq(work.id.to_string()))
            .filter(session::Column::UserId.eq(work.user.as_str()))
            .exec(tx)
            .await?;
        let ended = deleted.rows_affected == 1;
        if ended {
            append(tx, &work.entry).await?;
        }
        Ok(ended)
    })
}

pub(super) fn extend<'a>(
    tx: &'a DatabaseTransaction,
    (id, at): &'a (Uuid, DateTime<Utc>),
) -> TxFuture<'a, bool> {
    Box::pin(async move {
        let row = session::Entity::find_by_id(id.to_string())
            .lock_exclusive()
            .one(tx)
            .await?;
        let Some(mut session) = row.map(session_row::record).transpose()? else {
            return Ok(false);
        };
        session.last_used_at = session.last_used_at.max(*at);
        let changed = session_row::row(&session).into_active_model().reset_all();
        session::Entity::update(changed).exec(tx).await?;
        Ok(true)
    })
}

pub(super) fn purge<'a>(tx: &'a DatabaseTransaction, at: &'a i64) -> TxFuture<'a, u64> {
    Box::pin(async move {
        let deleted = session::Entity::delete_many()
            .filter(session::Column::EndsAt.lte(*at))
            .exec(tx)
            .await?;
        Ok(deleted.rows_affected)
    })
}

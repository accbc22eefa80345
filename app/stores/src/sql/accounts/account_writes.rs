//! Writes of accounts. Those that depend on other accounts are serialized: they count
//! administrators and compare e-mails, which no row lock protects.

use chrono::{DateTime, Utc};
use deerflow_core::fail_points;
use deerflow_domain::accounts::{
    Account, AccountChange, AccountError, Admission, ImportOutcome, NewAccount, NewAuditEntry,
    PasswordHash, Role, SessionsAfter, check_administrators, new_account_id,
};
use sea_orm::sea_query::Expr;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, DatabaseTransaction, DbErr, EntityTrait,
    IntoActiveModel, PaginatorTrait, QueryFilter, QuerySelect,
};

use super::account_row::{record, row};
use super::audit_row::append;
use super::session_writes::{end_sessions, insert_session};
use crate::db::entity::{account, api_key, micros};
use crate::db::text_lock::lock_text;
use crate::db::tx::TxFuture;

/// Text that all serialized writes lock.
const ACCOUNTS: &str = "accounts";

/// Result of work that may refuse before it writes.
type Decided<T> = Result<T, AccountError>;

/// Creation of an account.
pub(super) struct Creation {
    pub(super) new: NewAccount,
    pub(super) entry: NewAuditEntry,
}

pub(super) fn create<'a>(
    tx: &'a DatabaseTransaction,
    work: &'a Creation,
) -> TxFuture<'a, Decided<Account>> {
    Box::pin(async move {
        lock_text(tx, ACCOUNTS).await?;
        let administrators = administrators(tx).await?;
        if work.new.admission == Admission::NoAdministrator && administrators > 0 {
            return Ok(Err(AccountError::AdministratorExists));
        }
        let id = new_account_id(work.new.role, administrators, &work.new.id);
        let account = work.new.clone().into_account(id);
        if let Some(taken) = taken_by_other(tx, &account).await? {
            return Ok(Err(taken));
        }
        insert(tx, &account).await?;
        let entry = work.entry.clone();
        let object = entry.object.or_else(|| Some(account.id.clone()));
        append(tx, &NewAuditEntry { object, ..entry }).await?;
        fail_points::pass("account.written");
        Ok(Ok(account))
    })
}

/// Import of accounts with their ids.
pub(super) struct Import {
    pub(super) accounts: Vec<Account>,
    pub(super) entry: NewAuditEntry,
}

pub(super) fn import<'a>(
    tx: &'a DatabaseTransaction,
    work: &'a Import,
) -> TxFuture<'a, ImportOutcome> {
    Box::pin(async move {
        lock_text(tx, ACCOUNTS).await?;
        let mut outcome = ImportOutcome::default();
        for account in &work.accounts {
            let id = row(account).account_id;
            let exists = account::Entity::find_by_id(&id).count(tx).await? > 0;
            if exists || taken_by_other(tx, account).await?.is_some() {
                outcome.skipped.push(id);
                continue;
            }
            insert(tx, account).await?;
            append(tx, &work.entry.clone().on(&*id)).await?;
            fail_points::pass("account.written");
            outcome.imported.push(id);
        }
        Ok(outcome)
    })
}

/// Change of an account, its sessions and the audit log.
pub(super) struct Change {
    pub(super) id: String,
    pub(super) fields: AccountChange,
    pub(super) sessions: SessionsAfter,
    pub(super) entries: Vec<NewAuditEntry>,
    pub(super) at: DateTime<Utc>,
}

pub(super) fn change<'a>(
    tx: &'a DatabaseTransaction,
    work: &'a Change,
) -> TxFuture<'a, Decided<Account>> {
    Box::pin(async move {
        lock_text(tx, ACCOUNTS).await?;
        let Some(before) = locked(tx, &work.id).await? else {
            return Ok(Err(AccountError::NotFound));
        };
        let after = match work.fields.apply(&before, work.at) {
            Ok(after) => after,
            Err(refused) => return Ok(Err(refused)),
        };
        if let Some(taken) = taken_by_other(tx, &after).await? {
            return Ok(Err(taken));
        }
        if let Err(refused) = check(tx, &before, Some(&after)).await? {
            return Ok(Err(refused));
        }
        let changed = row(&after).into_active_model().reset_all();
        account::Entity::update(changed).exec(tx).await?;
        if work.fields.drops_credentials {
            revoke_keys(tx, &work.id, work.at).await?;
        }
        match &work.sessions {
            SessionsAfter::Unchanged => {}
            SessionsAfter::EndAll => {
                end_sessions(tx, &work.id, None).await?;
            }
            SessionsAfter::EndAllBut(but) => {
                end_sessions(tx, &work.id, Some(*but)).await?;
            }
            SessionsAfter::Replace(session) => {
                end_sessions(tx, &work.id, None).await?;
                insert_session(tx, session).await?;
            }
        }
        for entry in &work.entries {
            append(tx, entry).await?;
        }
        Ok(Ok(after))
    })
}

/// Replacement of the hash of an unchanged password.
pub(super) struct Rehash {
    pub(super) id: String,
    pub(super) old: PasswordHash,
    pub(super) new: PasswordHash,
}

pub(super) fn rehash<'a>(tx: &'a DatabaseTransaction, work: &'a Rehash) -> TxFuture<'a, bool> {
    Box::pin(async move {
        let updated = account::Entity::update_many()
            .col_expr(
                account::Column::PasswordHash,
                Expr::value(work.new.expose()),
            )
            .filter(account::Column::AccountId.eq(&work.id))
            .filter(account::Column::PasswordHash.eq(work.old.expose()))
            .exec(tx)
            .await?;
        Ok(updated.rows_affected == 1)
    })
}

/// Deletion of an account.
pub(super) struct Deletion {
    pub(super) id: String,
    pub(super) entry: NewAuditEntry,
}

pub(super) fn delete<'a>(
    tx: &'a DatabaseTransaction,
    work: &'a Deletion,
) -> TxFuture<'a, Decided<()>> {
    Box::pin(async move {
        lock_text(tx, ACCOUNTS).await?;
        let Some(before) = locked(tx, &work.id).await? else {
            return Ok(Err(AccountError::NotFound));
        };
        if let Err(refused) = check(tx, &before, None).await? {
            return Ok(Err(refused));
        }
        end_sessions(tx, &work.id, None).await?;
        revoke_keys(tx, &work.id, work.entry.at).await?;
        account::Entity::delete_by_id(&work.id).exec(tx).await?;
        append(tx, &work.entry).await?;
        Ok(Ok(()))
    })
}

/// Revokes the API keys of a user.
async fn revoke_keys(tx: &DatabaseTransaction, user: &str, at: DateTime<Utc>) -> Result<(), DbErr> {
    api_key::Entity::update_many()
        .col_expr(api_key::Column::RevokedAt, Expr::value(micros(at)))
        .filter(api_key::Column::UserId.eq(user))
        .filter(api_key::Column::RevokedAt.is_null())
        .exec(tx)
        .await
        .map(drop)
}

async fn insert(tx: &DatabaseTransaction, account: &Account) -> Result<(), DbErr> {
    account::Entity::insert(row(account).into_active_model())
        .exec_without_returning(tx)
        .await
        .map(drop)
}

/// Reads an account and locks its row, so that no session starts meanwhile.
async fn locked(tx: &DatabaseTransaction, id: &str) -> Result<Option<Account>, DbErr> {
    let row = account::Entity::find_by_id(id)
        .lock_exclusive()
        .one(tx)
        .await?;
    row.map(record).transpose()
}

/// Returns the refusal if another account has the e-mail or identity.
async fn taken_by_other(
    tx: &DatabaseTransaction,
    account: &Account,
) -> Result<Option<AccountError>, DbErr> {
    let row = row(account);
    let others =
        account::Entity::find().filter(account::Column::AccountId.ne(row.account_id.as_str()));
    let same_email = others.clone().filter(account::Column::Email.eq(row.email));
    if same_email.count(tx).await? > 0 {
        return Ok(Some(AccountError::EmailTaken));
    }
    let (Some(provider), Some(subject)) = (row.provider, row.subject) else {
        return Ok(None);
    };
    let same_identity = others.filter(
        Condition::all()
            .add(account::Column::Provider.eq(provider))
            .add(account::Column::Subject.eq(subject)),
    );
    let taken = same_identity.count(tx).await? > 0;
    Ok(taken.then_some(AccountError::IdentityTaken))
}

async fn administrators(tx: &DatabaseTransaction) -> Result<u64, DbErr> {
    account::Entity::find()
        .filter(account::Column::Role.eq(Role::Admin.as_str()))
        .count(tx)
        .await
}

/// Checks the rules of administrators against the other rows.
async fn check(
    tx: &DatabaseTransaction,
    before: &Account,
    after: Option<&Account>,
) -> Result<Decided<()>, DbErr> {
    let enabled_others = account::Entity::find()
        .filter(account::Column::Role.eq(Role::Admin.as_str()))
        .filter(account::Column::DisabledAt.is_null())
        .filter(account::Column::AccountId.ne(before.id.as_str()))
        .count(tx)
        .await?;
    let administrators = administrators(tx).await?;
    Ok(check_administrators(
        before,
        after,
        enabled_others,
        administrators,
    ))
}

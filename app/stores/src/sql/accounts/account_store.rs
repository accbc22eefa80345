//! Accounts over SQL.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_core::fail_points;
use deerflow_domain::accounts::{
    Account, AccountCensus, AccountChange, AccountError, AccountPage, AccountQuery, AccountStore,
    Email, ImportOutcome, NewAccount, NewAuditEntry, PasswordHash, ProviderIdentity, Role,
    SessionsAfter,
};
use deerflow_runtime::runs::store::StoreError;
use sea_orm::sea_query::{Expr, Func, LikeExpr};
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect,
};

use super::SqlAccountStore;
use super::account_row::record;
use super::account_writes::{
    Change, Creation, Deletion, Import, Rehash, change, create, delete, import, rehash,
};
use crate::db::entity::{account, plain};
use crate::db::error::read;

impl SqlAccountStore {
    async fn one(&self, filter: Condition) -> Result<Option<Account>, StoreError> {
        let row = account::Entity::find()
            .filter(filter)
            .one(self.db.reads())
            .await;
        read(read(row)?.map(record).transpose())
    }
}

#[async_trait]
impl AccountStore for SqlAccountStore {
    async fn create(&self, new: NewAccount, entry: NewAuditEntry) -> Result<Account, AccountError> {
        let work = Creation { new, entry };
        let created = self.db.writes().create(work, create).await?;
        fail_points::pass("account.committed");
        created
    }

    async fn import(
        &self,
        accounts: Vec<Account>,
        entry: NewAuditEntry,
    ) -> Result<ImportOutcome, AccountError> {
        let work = Import { accounts, entry };
        let outcome = self.db.writes().create(work, import).await?;
        fail_points::pass("account.committed");
        Ok(outcome)
    }

    async fn find(&self, id: &str) -> Result<Option<Account>, StoreError> {
        let by_id = account::Column::AccountId.eq(plain(id));
        self.one(Condition::all().add(by_id)).await
    }

    async fn find_by_email(&self, email: &Email) -> Result<Option<Account>, StoreError> {
        let by_email = account::Column::Email.eq(plain(email.as_str()));
        self.one(Condition::all().add(by_email)).await
    }

    async fn find_by_identity(
        &self,
        identity: &ProviderIdentity,
    ) -> Result<Option<Account>, StoreError> {
        let by_identity = Condition::all()
            .add(account::Column::Provider.eq(plain(identity.provider())))
            .add(account::Column::Subject.eq(plain(identity.subject())));
        self.one(by_identity).await
    }

    async fn list(&self, query: &AccountQuery) -> Result<AccountPage, StoreError> {
        let select = account::Entity::find().filter(selection(query));
        let total = read(select.clone().count(self.db.reads()).await)?;
        let rows = select
            .order_by_asc(account::Column::CreatedAt)
            .order_by_asc(account::Column::AccountId)
            .limit(query.limit.min(i64::MAX as u64))
            .offset(query.offset.min(i64::MAX as u64))
            .all(self.db.reads())
            .await;
        Ok(AccountPage {
            accounts: read(read(rows)?.into_iter().map(record).collect())?,
            total,
        })
    }

    async fn census(&self) -> Result<AccountCensus, StoreError> {
        let all = account::Entity::find();
        let admins = all
            .clone()
            .filter(account::Column::Role.eq(Role::Admin.as_str()));
        Ok(AccountCensus {
            accounts: read(all.count(self.db.reads()).await)?,
            administrators: read(admins.count(self.db.reads()).await)?,
        })
    }

    async fn change(
        &self,
        id: &str,
        fields: AccountChange,
        sessions: SessionsAfter,
        entries: Vec<NewAuditEntry>,
        at: DateTime<Utc>,
    ) -> Result<Account, AccountError> {
        let work = Change {
            id: plain(id),
            fields,
            sessions,
            entries,
            at,
        };
        self.db.writes().release(work, change).await?
    }

    async fn rehash(
        &self,
        id: &str,
        old: &PasswordHash,
        new: PasswordHash,
    ) -> Result<bool, StoreError> {
        let work = Rehash {
            id: plain(id),
            old: old.clone(),
            new,
        };
        self.db.writes().run(work, rehash).await
    }

    async fn delete(&self, id: &str, entry: NewAuditEntry) -> Result<(), AccountError> {
        let id = plain(id);
        self.db
            .writes()
            .release(Deletion { id, entry }, delete)
            .await?
    }
}

fn selection(query: &AccountQuery) -> Condition {
    let of_role = query
        .role
        .map(|role| account::Column::Role.eq(role.as_str()));
    Condition::all()
        .add(of_text(query.q.as_deref()))
        .add_option(of_role)
}

/// Selects accounts by a part of the e-mail or by the id, whatever the case.
fn of_text(q: Option<&str>) -> Condition {
    use sea_orm::ExprTrait as _;

    let Some(q) = q.filter(|q| !q.is_empty()) else {
        return Condition::all();
    };
    let q = plain(q).to_lowercase();
    let escaped = q
        .replace('\\', "\\\\")
        .replace('%', "\\%")
        .replace('_', "\\_");
    let part = LikeExpr::new(format!("%{escaped}%")).escape('\\');
    Condition::any()
        .add(account::Column::Email.like(part))
        .add(Expr::expr(Func::lower(Expr::col(account::Column::AccountId))).eq(q))
}

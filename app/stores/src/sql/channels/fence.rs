//! Writes that need a claim: each transaction first locks the lease of the account and checks its
//! epoch.

use deerflow_domain::channels::{Account, AccountClaim, ChannelStoreError};
use sea_orm::sea_query::{InsertStatement, UpdateStatement};
use sea_orm::{
    ConnectionTrait, DatabaseTransaction, DbBackend, EntityTrait, QueryResult, QueryTrait,
    UpdateMany, Value,
};

use crate::db::entity::plain;
use crate::db::space::WriteClass;
use crate::db::statement_batch::{StatementBatch, tagged};
use crate::db::tx::{TxError, TxFuture};
use crate::db::writes::Writes;

/// Lock of the lease that a transaction holds until its end. Acquisition waits for both.
#[derive(Debug, Clone, Copy)]
pub(super) enum LeaseLock {
    /// Held by any number of transactions.
    Shared,
    /// Held by one transaction: it reads what it changes.
    Exclusive,
}

/// Adds the check of a claim to a batch; [`is_held`] reads its result.
pub(super) fn add_fence(
    statements: &mut StatementBatch,
    backend: DbBackend,
    claim: &AccountClaim,
    lock: LeaseLock,
) {
    // SQLite has a single writer.
    let sql = match (backend, lock) {
        (DbBackend::Postgres, LeaseLock::Shared) => {
            "SELECT 'lease' FROM channel_leases WHERE provider = ? AND account = ? AND epoch = ? FOR SHARE"
        }
        (DbBackend::Postgres, LeaseLock::Exclusive) => {
            "SELECT 'lease' FROM channel_leases WHERE provider = ? AND account = ? AND epoch = ? FOR UPDATE"
        }
        _ => "SELECT 'lease' FROM channel_leases WHERE provider = ? AND account = ? AND epoch = ?",
    };
    let [provider, account] = account_values(&claim.account);
    statements.add(sql, [provider, account, claim.epoch.into()]);
}

/// Returns `true` if the claim is the newest of its account.
pub(super) fn is_held(rows: &[QueryResult]) -> bool {
    tagged(rows, "lease").is_some()
}

/// Checks that all written accounts are the claimed one.
pub(super) fn check_accounts<'a>(
    claim: &AccountClaim,
    written: impl IntoIterator<Item = &'a Account>,
) -> Result<(), ChannelStoreError> {
    if written.into_iter().all(|account| *account == claim.account) {
        Ok(())
    } else {
        Err(ChannelStoreError::Fenced)
    }
}

/// Returns platform and id of an account as stored.
pub(super) fn account_values(account: &Account) -> [Value; 2] {
    [plain(&account.provider).into(), plain(&account.id).into()]
}

enum FencedStatement {
    Text(&'static str, Vec<Value>),
    Update(UpdateStatement),
    Insert(InsertStatement),
}

/// Statements that take effect together if the claim is the newest of its account.
pub(super) struct FencedWrite {
    claim: AccountClaim,
    statements: Vec<FencedStatement>,
}

impl FencedWrite {
    /// Creates a write without statements.
    pub(super) fn new(claim: &AccountClaim) -> Self {
        Self {
            claim: claim.clone(),
            statements: Vec::new(),
        }
    }

    /// Adds a statement with a `?` for each value.
    pub(super) fn text(mut self, sql: &'static str, values: Vec<Value>) -> Self {
        self.statements.push(FencedStatement::Text(sql, values));
        self
    }

    /// Adds an update.
    pub(super) fn update<E: EntityTrait>(mut self, update: UpdateMany<E>) -> Self {
        let update = FencedStatement::Update(update.into_query());
        self.statements.push(update);
        self
    }

    /// Adds an insert, if there is one.
    pub(super) fn insert(mut self, insert: Option<InsertStatement>) -> Self {
        self.statements.extend(insert.map(FencedStatement::Insert));
        self
    }

    /// Runs the statements in one transaction of this class.
    pub(super) async fn run(
        self,
        writes: &Writes,
        class: WriteClass,
    ) -> Result<(), ChannelStoreError> {
        writes.run_as(class, self, run_fenced).await
    }
}

fn run_fenced<'a>(
    tx: &'a DatabaseTransaction,
    write: &'a FencedWrite,
) -> TxFuture<'a, (), ChannelStoreError> {
    Box::pin(async move {
        let mut statements = StatementBatch::new(tx);
        let backend = tx.get_database_backend();
        add_fence(&mut statements, backend, &write.claim, LeaseLock::Shared);
        for statement in &write.statements {
            match statement {
                FencedStatement::Text(sql, values) => statements.add_values(sql, values.clone()),
                FencedStatement::Update(update) => statements.add_built(update),
                FencedStatement::Insert(insert) => statements.add_built(insert),
            }
        }
        if is_held(&statements.run(tx).await?) {
            Ok(())
        } else {
            Err(TxError::Refused(ChannelStoreError::Fenced))
        }
    })
}

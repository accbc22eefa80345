//! Limits of sign-in and registration over SQL.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use deerflow_domain::accounts::{
    AddressKey, AttemptKey, AuditAction, AuditOutcome, LoginLimitStore, LoginVerdict,
    NewAuditEntry, PAIR_RULE, REGISTRATION_WINDOW, decide_login, registration_wait,
};
use deerflow_runtime::runs::store::StoreError;
use sea_orm::{DatabaseTransaction, Value};

use super::SqlAccountStore;
use super::attempts::{counters, lock_attempts, put_attempt};
use super::audit_row::append;
use crate::db::entity::{micros, moment};
use crate::db::json::json_text;
use crate::db::statement_batch::{StatementBatch, all_tagged, tagged};
use crate::db::text_lock::lock_text;
use crate::db::tx::TxFuture;

const FORGET: &str = "\
    DELETE FROM login_attempts WHERE attempt_id = ? OR (subject = ? AND address = ? AND failed)";

const REMEMBER: &str = "\
    INSERT INTO login_addresses (subject, address, used_at) VALUES (?, ?, ?) \
    ON CONFLICT (subject, address) DO UPDATE SET used_at = excluded.used_at";

const WITHDRAW: &str = "DELETE FROM login_attempts WHERE attempt_id = ?";

const REGISTRATION: &str = "\
    SELECT 'full', registered_at FROM registrations WHERE address = ? AND registered_at > ? \
    ORDER BY registered_at DESC LIMIT 1 OFFSET ?";

const REGISTER: &str = "INSERT INTO registrations (address, registered_at) VALUES (?, ?)";

const PURGES: [&str; 3] = [
    "DELETE FROM login_attempts WHERE attempted_at <= ? RETURNING 'deleted'",
    "DELETE FROM registrations WHERE registered_at <= ? RETURNING 'deleted'",
    "DELETE FROM login_addresses WHERE used_at < ? RETURNING 'deleted'",
];

#[async_trait]
impl LoginLimitStore for SqlAccountStore {
    async fn begin(&self, key: &AttemptKey, at: DateTime<Utc>) -> Result<LoginVerdict, StoreError> {
        self.db.writes().run((key.clone(), at), begin).await
    }

    async fn fail(
        &self,
        key: &AttemptKey,
        entry: NewAuditEntry,
    ) -> Result<Option<Duration>, StoreError> {
        self.db.writes().run((key.clone(), entry), fail).await
    }

    async fn succeed(&self, key: &AttemptKey, at: DateTime<Utc>) -> Result<(), StoreError> {
        self.db.writes().run((key.clone(), at), succeed).await
    }

    async fn withdraw(&self, key: &AttemptKey) -> Result<(), StoreError> {
        self.db.writes().release(key.clone(), withdraw).await
    }

    async fn register(
        &self,
        address: &AddressKey,
        limit: u32,
        at: DateTime<Utc>,
    ) -> Result<Option<Duration>, StoreError> {
        if limit == 0 {
            return Ok(None);
        }
        let work = (address.as_str().to_owned(), limit, at);
        self.db.writes().create(work, register).await
    }

    async fn purge(
        &self,
        at: DateTime<Utc>,
        known_before: DateTime<Utc>,
    ) -> Result<u64, StoreError> {
        let before = |window: TimeDelta| micros(at - window);
        let ends = [
            before(PAIR_RULE.memory),
            before(REGISTRATION_WINDOW),
            micros(known_before),
        ];
        self.db.writes().release(ends, purge).await
    }
}

fn begin<'a>(
    tx: &'a DatabaseTransaction,
    (key, at): &'a (AttemptKey, DateTime<Utc>),
) -> TxFuture<'a, LoginVerdict> {
    Box::pin(async move {
        lock_attempts(tx, key).await?;
        let verdict = decide_login(&counters(tx, key, *at).await?, *at);
        if verdict == LoginVerdict::Verify {
            put_attempt(tx, key, false, *at).await?;
        }
        Ok(verdict)
    })
}

fn fail<'a>(
    tx: &'a DatabaseTransaction,
    (key, entry): &'a (AttemptKey, NewAuditEntry),
) -> TxFuture<'a, Option<Duration>> {
    Box::pin(async move {
        lock_attempts(tx, key).await?;
        put_attempt(tx, key, true, entry.at).await?;
        append(tx, entry).await?;
        let pair = counters(tx, key, entry.at).await?.pair;
        let lock = pair
            .locked_until(PAIR_RULE)
            .and_then(|end| (end - entry.at).to_std().ok());
        if lock.is_some() {
            let locked = NewAuditEntry {
                action: AuditAction::SignInLocked,
                outcome: AuditOutcome::Refused,
                ..entry.clone()
            };
            append(tx, &locked).await?;
        }
        Ok(lock)
    })
}

fn succeed<'a>(
    tx: &'a DatabaseTransaction,
    (key, at): &'a (AttemptKey, DateTime<Utc>),
) -> TxFuture<'a, ()> {
    Box::pin(async move {
        lock_attempts(tx, key).await?;
        let mut statements = StatementBatch::new(tx);
        let (subject, address) = (
            Value::from(key.subject.as_str()),
            Value::from(key.address.as_str()),
        );
        let id = key.id.to_string().into();
        statements.add(FORGET, [id, subject.clone(), address.clone()]);
        statements.add(REMEMBER, [subject, address, micros(*at).into()]);
        statements.run(tx).await?;
        Ok(())
    })
}

fn withdraw<'a>(tx: &'a DatabaseTransaction, key: &'a AttemptKey) -> TxFuture<'a, ()> {
    Box::pin(async move {
        let mut statements = StatementBatch::new(tx);
        statements.add(WITHDRAW, [key.id.to_string().into()]);
        statements.run(tx).await?;
        Ok(())
    })
}

fn register<'a>(
    tx: &'a DatabaseTransaction,
    (address, limit, at): &'a (String, u32, DateTime<Utc>),
) -> TxFuture<'a, Option<Duration>> {
    Box::pin(async move {
        lock_text(tx, &json_text(&("registrations", address))).await?;
        let mut statements = StatementBatch::new(tx);
        let since = micros(*at - REGISTRATION_WINDOW).into();
        let offset = i64::from(limit.saturating_sub(1)).into();
        statements.add(REGISTRATION, [address.as_str().into(), since, offset]);
        let rows = statements.run(tx).await?;
        let full = tagged(&rows, "full").map(|row| row.try_get_by_index(1));
        let wait = registration_wait(full.transpose()?.map(moment), *at);
        if wait.is_none() {
            let mut statements = StatementBatch::new(tx);
            statements.add(REGISTER, [address.as_str().into(), micros(*at).into()]);
            statements.run(tx).await?;
        }
        Ok(wait)
    })
}

fn purge<'a>(tx: &'a DatabaseTransaction, ends: &'a [i64; 3]) -> TxFuture<'a, u64> {
    Box::pin(async move {
        let mut statements = StatementBatch::new(tx);
        for (sql, end) in PURGES.into_iter().zip(ends) {
            statements.add(sql, [(*end).into()]);
        }
        let rows = statements.run(tx).await?;
        Ok(all_tagged(&rows, "deleted").count() as u64)
    })
}

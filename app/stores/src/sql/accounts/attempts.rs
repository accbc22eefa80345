//! Statements on attempts to sign in: their counters and their rows.

use chrono::{DateTime, Utc};
use deerflow_domain::accounts::{
    ACCOUNT_RULE, ADDRESS_FAILURES, ADDRESS_WINDOW, AttemptKey, FailureRun, LoginCounters,
    PAIR_RULE, PENDING_TIMEOUT,
};
use sea_orm::{DatabaseTransaction, DbErr, QueryResult, Value};

use crate::db::entity::{micros, moment};
use crate::db::json::json_text;
use crate::db::statement_batch::{StatementBatch, tagged};
use crate::db::text_lock::lock_text;

const PAIR: &str = "\
    SELECT 'pair', COUNT(*) FILTER (WHERE failed), MAX(attempted_at) FILTER (WHERE failed), \
        COUNT(*) FILTER (WHERE NOT failed AND attempted_at > ? AND attempt_id <> ?) \
    FROM login_attempts WHERE subject = ? AND address = ? AND attempted_at > ?";

const ACCOUNT: &str = "\
    SELECT 'account', COUNT(*) FILTER (WHERE failed), MAX(attempted_at) FILTER (WHERE failed), \
        COUNT(*) FILTER (WHERE NOT failed AND attempted_at > ? AND attempt_id <> ?) \
    FROM login_attempts WHERE subject = ? AND attempted_at > ?";

const ADDRESS: &str = "\
    SELECT 'address', COUNT(*) FILTER (WHERE failed), MAX(attempted_at) FILTER (WHERE failed), \
        COUNT(*) FILTER (WHERE NOT failed AND attempted_at > ? AND attempt_id <> ?) \
    FROM login_attempts WHERE address = ? AND attempted_at > ?";

const FULL: &str = "\
    SELECT 'full', attempted_at FROM login_attempts WHERE address = ? AND attempted_at > ? AND failed \
    ORDER BY attempted_at DESC LIMIT 1 OFFSET ?";

const KNOWN: &str = "SELECT 'known' FROM login_addresses WHERE subject = ? AND address = ?";

const PUT: &str = "\
    INSERT INTO login_attempts (attempt_id, subject, address, failed, attempted_at) VALUES (?, ?, ?, ?, ?) \
    ON CONFLICT (attempt_id) DO UPDATE SET failed = excluded.failed, attempted_at = excluded.attempted_at";

/// Serializes the attempts of an address and those of an account. All transactions lock in this
/// order, so they cannot deadlock.
pub(super) async fn lock_attempts(tx: &DatabaseTransaction, key: &AttemptKey) -> Result<(), DbErr> {
    lock_text(tx, &json_text(&("login address", key.address.as_str()))).await?;
    lock_text(tx, &json_text(&("login subject", &key.subject))).await
}

/// Reads the counters that concern an attempt.
pub(super) async fn counters(
    tx: &DatabaseTransaction,
    key: &AttemptKey,
    at: DateTime<Utc>,
) -> Result<LoginCounters, DbErr> {
    let text = |text: &str| Value::from(text);
    let (subject, address) = (text(&key.subject), text(key.address.as_str()));
    let own = || {
        [
            micros(at - PENDING_TIMEOUT).into(),
            key.id.to_string().into(),
        ]
    };
    let since = |window| Value::from(micros(at - window));
    let mut statements = StatementBatch::new(tx);
    let [pending, id] = own();
    let window = since(PAIR_RULE.memory);
    statements.add(
        PAIR,
        [pending, id, subject.clone(), address.clone(), window],
    );
    let [pending, id] = own();
    let window = since(ACCOUNT_RULE.memory);
    statements.add(ACCOUNT, [pending, id, subject.clone(), window]);
    let [pending, id] = own();
    let window = since(ADDRESS_WINDOW);
    statements.add(ADDRESS, [pending, id, address.clone(), window.clone()]);
    let offset = i64::from(ADDRESS_FAILURES - 1).into();
    statements.add(FULL, [address.clone(), window, offset]);
    statements.add(KNOWN, [subject, address]);
    let rows = statements.run(tx).await?;
    let full = tagged(&rows, "full").map(|row| row.try_get_by_index(1));
    Ok(LoginCounters {
        pair: run(&rows, "pair")?,
        account: run(&rows, "account")?,
        address: run(&rows, "address")?,
        address_full_since: full.transpose()?.map(moment),
        known: tagged(&rows, "known").is_some(),
    })
}

fn run(rows: &[QueryResult], tag: &str) -> Result<FailureRun, DbErr> {
    let Some(row) = tagged(rows, tag) else {
        return Ok(FailureRun::default());
    };
    let count = |index| {
        let count: i64 = row.try_get_by_index(index)?;
        Ok::<_, DbErr>(u32::try_from(count).unwrap_or(u32::MAX))
    };
    let last_at: Option<i64> = row.try_get_by_index(2)?;
    Ok(FailureRun {
        count: count(1)?,
        last_at: last_at.map(moment),
        pending: count(3)?,
    })
}

/// Stores an attempt, in progress or failed.
pub(super) async fn put_attempt(
    tx: &DatabaseTransaction,
    key: &AttemptKey,
    failed: bool,
    at: DateTime<Utc>,
) -> Result<(), DbErr> {
    let mut statements = StatementBatch::new(tx);
    let id = key.id.to_string().into();
    let (subject, address) = (key.subject.as_str().into(), key.address.as_str().into());
    statements.add(
        PUT,
        [id, subject, address, failed.into(), micros(at).into()],
    );
    statements.run(tx).await.map(drop)
}

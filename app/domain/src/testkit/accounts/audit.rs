//! Requirements of the audit log.

use deerflow_runtime::testkit::at;

use super::{AccountSuite, entry};
use crate::accounts::{AuditAction, AuditEntry, AuditLog, AuditOutcome, AuditQuery, NewAuditEntry};

fn by(user: &str, action: AuditAction, n: i64) -> NewAuditEntry {
    entry(action, n).by(user)
}

async fn times(log: &dyn AuditLog, query: AuditQuery) -> Vec<i64> {
    let query = AuditQuery {
        limit: query.limit.max(2),
        ..query
    };
    let entries = log.list(&query).await.expect("read");
    assert!(entries.is_sorted_by(|a, b| a.seq > b.seq));
    entries
        .iter()
        .map(|entry| (entry.entry.at - at(0)).num_seconds())
        .collect()
}

/// Filters by user, action and position combine; an entry concerns its actor and its object.
pub async fn audit_is_listed_newest_first_and_filtered(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    let log = suite.stores.audit.clone();
    let full = by("ann", AuditAction::KeyCreated, 1)
        .from_client(Some("10.0.0.7"), Some(&"ü".repeat(300)))
        .on("k1")
        .with_outcome(AuditOutcome::Refused);
    for new in [
        full.clone(),
        by("bob", AuditAction::RoleChanged, 2).on("ann"),
        by("bob", AuditAction::SignIn, 3),
        by("ann", AuditAction::SignIn, 4),
    ] {
        assert_eq!(log.append(new).await, Ok(()));
    }
    let query = AuditQuery {
        limit: 10,
        ..AuditQuery::default()
    };
    let all: Vec<AuditEntry> = log.list(&query).await.expect("read");
    assert_eq!(all.len(), 4);
    assert_eq!(all[3].entry, full);
    assert_eq!(
        all[3]
            .entry
            .agent
            .as_ref()
            .map(|agent| agent.chars().count()),
        Some(200)
    );
    let log = &*log;
    assert_eq!(times(log, AuditQuery::default()).await, [4, 3]);
    let before = AuditQuery {
        before: Some(all[1].seq),
        ..AuditQuery::default()
    };
    assert_eq!(times(log, before.clone()).await, [2, 1]);
    let of_ann = AuditQuery {
        user: Some("ann".to_owned()),
        limit: 3,
        ..AuditQuery::default()
    };
    assert_eq!(times(log, of_ann.clone()).await, [4, 2, 1]);
    let sign_in = AuditQuery {
        action: Some(AuditAction::SignIn),
        ..of_ann.clone()
    };
    assert_eq!(times(log, sign_in).await, [4]);
    let combined = AuditQuery {
        user: of_ann.user,
        ..before
    };
    assert_eq!(times(log, combined).await, [2, 1]);
}

/// Entries of exactly the age stay.
pub async fn audit_is_purged_by_age(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    let log = suite.stores.audit.clone();
    for n in 1..=3 {
        assert_eq!(log.append(by("ann", AuditAction::SignIn, n)).await, Ok(()));
    }
    assert_eq!(log.purge(at(2)).await, Ok(1));
    assert_eq!(times(&*log, AuditQuery::default()).await, [3, 2]);
    assert_eq!(log.purge(at(2)).await, Ok(0));
}

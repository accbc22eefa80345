//! Applies the weights of roles to the turns of users who wait for limited work.

use std::sync::Arc;
use std::time::Duration;

use deerflow_domain::accounts::{AccountQuery, AccountStore, Role};
use harness::config::RoleWeights;
use harness::runtime::runs::store::StoreError;
use harness::runtime::tasks::{TaskKind, Tasks};
use harness::turn_weights::TurnWeights;

use crate::config::ConfigHandle;

/// Interval at which the administrators are read. Bounds the delay of a changed role.
const INTERVAL: Duration = Duration::from_secs(10);
/// Maximum number of administrators with their own weight.
const MAX_ADMINISTRATORS: u64 = 10_000;

/// Starts a task that sets the weights of this process when the configuration changes, and at
/// intervals.
///
/// The account decides, not the actor of a run: a run of a removed administrator waits like others,
/// also if another node created it. The weights are in memory, because a request for a permit must
/// not wait for the database.
pub(crate) fn spawn_update_loop(
    config: &ConfigHandle,
    accounts: Arc<dyn AccountStore>,
    tasks: &Tasks,
) {
    let mut changes = config.subscribe();
    let token = tasks.token().clone();
    let of_process = TurnWeights::of_process();
    tasks.spawn(TaskKind::Service, "turn weights", async move {
        loop {
            let weights = changes.borrow_and_update().fair_permits.weights;
            if let Err(error) = update(&of_process, weights, &*accounts).await {
                tracing::warn!(%error, "cannot read the administrators for the weights of users");
            }
            tokio::select! {
                () = token.cancelled() => return,
                changed = changes.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
    });
}

/// Sets the weights of all users. Reads accounts only if the roles differ.
async fn update(
    target: &TurnWeights,
    weights: RoleWeights,
    accounts: &dyn AccountStore,
) -> Result<(), StoreError> {
    let (admin, user) = weights.reduced();
    let administrators = if admin == user {
        Vec::new()
    } else {
        let query = AccountQuery {
            role: Some(Role::Admin),
            limit: MAX_ADMINISTRATORS,
            ..AccountQuery::default()
        };
        accounts.list(&query).await?.accounts
    };
    let of_users = administrators.into_iter().map(|found| (found.id, admin));
    target.set(user, of_users.collect());
    Ok(())
}

#[cfg(test)]
mod tests {
    use deerflow_domain::accounts::{
        AccountChange, AuditAction, InMemoryAccounts, NewAuditEntry, SessionsAfter,
    };
    use deerflow_domain::testkit::accounts::account;
    use harness::config::AppConfig;
    use harness::testkit::at;
    use serde_json::json;

    use super::*;

    fn weights(admin: u32, user: u32) -> RoleWeights {
        let section = json!({"fair_permits": {"weights": {"admin": admin, "user": user}}});
        let config: AppConfig = serde_json::from_value(section).unwrap();
        config.fair_permits.weights
    }

    #[tokio::test]
    async fn weight_follows_role_of_account() {
        let accounts = Arc::new(InMemoryAccounts::default()).stores().accounts;
        let mut root = account("root", "root@example.org");
        root.role = Role::Admin;
        let entry = NewAuditEntry::new(AuditAction::AccountImported, at(0));
        let people = vec![root, account("ann", "ann@example.org")];
        accounts.import(people, entry.clone()).await.unwrap();
        let target = TurnWeights::default();
        let of_users = || ["root", "ann", "unknown"].map(|user| target.of(user).get());
        update(&target, weights(6, 2), &*accounts).await.unwrap();
        assert_eq!(of_users(), [3, 1, 1]);
        let promoted = AccountChange {
            role: Some(Role::Admin),
            ..AccountChange::default()
        };
        let changed = accounts.change("ann", promoted, SessionsAfter::Unchanged, vec![], at(1));
        changed.await.unwrap();
        update(&target, weights(1, 5), &*accounts).await.unwrap();
        assert_eq!(of_users(), [1, 1, 5]);
        update(&target, weights(7, 7), &*accounts).await.unwrap();
        assert_eq!(of_users(), [1, 1, 1]);
    }
}

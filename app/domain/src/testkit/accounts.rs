//! Contract suite of account stores.

mod audit;
mod changes;
mod creation;
mod keys;
mod limits;
mod listing;
mod races;
mod sessions;
mod used_states;

use std::sync::Arc;

use deerflow_runtime::testkit::{Keep, at};
use uuid::Uuid;

use crate::accounts::{
    Account, AccountChange, AccountStore, AccountStores, Admission, AuditAction, AuditQuery, Email,
    NewAccount, NewAuditEntry, NewSession, PasswordHash, Role, Session, SessionsAfter, TokenHash,
};
use crate::api_keys::ApiKeyStore;

pub use audit::{audit_is_listed_newest_first_and_filtered, audit_is_purged_by_age};
pub use changes::{
    change_of_email_or_identity_respects_others, change_refused_by_rule_writes_nothing,
    deleted_account_leaves_no_session, last_enabled_administrator_stays,
    password_change_needs_verified_hash, rehash_replaces_only_known_hash,
};
pub use creation::{
    created_account_is_returned_unchanged, email_and_identity_are_unique,
    first_administrator_is_default_user, import_is_repeated_without_change,
    promotion_needs_administrator,
};
pub use keys::{
    admin_key_of_demoted_account_has_no_admin_right,
    dropped_credentials_leave_no_password_and_no_key,
    key_of_disabled_or_deleted_account_is_not_found, keys_of_a_user_are_limited,
    keys_of_operators_are_recorded, own_keys_are_revoked_by_owner_only,
};
pub use limits::{
    address_failures_refuse_all_accounts, failures_lock_pair_and_success_clears_them,
    known_address_is_exempt, registrations_are_limited_per_address, strangers_are_slowed_down,
    withdrawn_and_old_attempts_do_not_count,
};
pub use listing::{accounts_are_listed_by_role, accounts_are_listed_by_text_with_total};
pub use races::{
    administrators_racing_to_demote_each_other_leave_one, concurrent_attempts_do_not_exceed_limit,
    concurrent_initializations_create_one_administrator,
    concurrent_registrations_of_email_create_one,
};
pub use sessions::{
    change_ends_the_named_sessions, ended_session_is_not_found, session_of_owner_is_ended_once,
    session_starts_only_for_verified_enabled_account, sessions_are_listed_extended_and_purged,
};
pub use used_states::{state_is_used_once_on_all_nodes, used_state_is_forgotten_after_its_end};

/// Generates one test per requirement of account stores.
#[macro_export]
macro_rules! account_store_suite {
    ($attrs:tt $open:expr) => {
        deerflow_runtime::promises! { $attrs $open, [$crate::testkit::accounts]
            created_account_is_returned_unchanged
            email_and_identity_are_unique
            first_administrator_is_default_user
            promotion_needs_administrator
            import_is_repeated_without_change
            accounts_are_listed_by_text_with_total
            accounts_are_listed_by_role
            change_of_email_or_identity_respects_others
            change_refused_by_rule_writes_nothing
            last_enabled_administrator_stays
            password_change_needs_verified_hash
            rehash_replaces_only_known_hash
            deleted_account_leaves_no_session
            session_starts_only_for_verified_enabled_account
            ended_session_is_not_found
            session_of_owner_is_ended_once
            change_ends_the_named_sessions
            sessions_are_listed_extended_and_purged
            failures_lock_pair_and_success_clears_them
            known_address_is_exempt
            address_failures_refuse_all_accounts
            strangers_are_slowed_down
            withdrawn_and_old_attempts_do_not_count
            registrations_are_limited_per_address
            audit_is_listed_newest_first_and_filtered
            audit_is_purged_by_age
            keys_of_a_user_are_limited
            key_of_disabled_or_deleted_account_is_not_found
            own_keys_are_revoked_by_owner_only
            dropped_credentials_leave_no_password_and_no_key
            state_is_used_once_on_all_nodes
            used_state_is_forgotten_after_its_end
            admin_key_of_demoted_account_has_no_admin_right
            keys_of_operators_are_recorded
            concurrent_initializations_create_one_administrator
            concurrent_registrations_of_email_create_one
            administrators_racing_to_demote_each_other_leave_one
            concurrent_attempts_do_not_exceed_limit
        }
    };
}

/// Account stores, opened fresh for each test.
#[derive(Debug, Clone)]
pub struct AccountSuite {
    /// Stores under test.
    pub stores: AccountStores,
    /// Stores of a second node over the same data.
    pub other_node: AccountStores,
    /// Keys of the same accounts.
    pub keys: Arc<dyn ApiKeyStore>,
    /// Resources that must live as long as the stores.
    pub keep: Arc<dyn Keep>,
}

impl AccountSuite {
    /// Returns the stores of one of both nodes.
    fn node(&self, n: usize) -> &AccountStores {
        if n.is_multiple_of(2) {
            &self.stores
        } else {
            &self.other_node
        }
    }
}

/// Returns an enabled account of a user without password.
pub fn account(id: &str, email: &str) -> Account {
    Account {
        id: id.to_owned(),
        email: self::email(email),
        role: Role::User,
        password_hash: None,
        identity: None,
        needs_setup: false,
        disabled_at: None,
        created_at: at(0),
        updated_at: at(0),
        last_login_at: None,
    }
}

/// Returns a session that started at time `n`.
pub fn session(id: u128, user: &str, n: i64) -> Session {
    Session {
        id: Uuid::from_u128(id),
        user_id: user.to_owned(),
        token_hash: TokenHash::of(&format!("token {id}")),
        created_at: at(n),
        last_used_at: at(n),
        persistent: true,
        user_agent: None,
        address: None,
    }
}

/// Disables or enables the account of a user, which is created if it does not exist.
pub async fn set_disabled(accounts: &dyn AccountStore, user: &str, disabled: bool) {
    if accounts.find(user).await.expect("read").is_none() {
        let new = new_account(user, Role::User);
        let created = accounts.create(new, entry(AuditAction::AccountCreated, 0));
        created.await.expect("created");
    }
    let change = AccountChange {
        disabled: Some(disabled),
        ..AccountChange::default()
    };
    let changed = accounts.change(user, change, SessionsAfter::EndAll, vec![], at(5));
    changed.await.expect("changed");
}

fn email(text: &str) -> Email {
    Email::parse(text).expect("a valid address")
}

fn entry(action: AuditAction, n: i64) -> NewAuditEntry {
    NewAuditEntry::new(action, at(n))
}

/// Returns a new account whose e-mail and password hash follow from the id.
fn new_account(id: &str, role: Role) -> NewAccount {
    NewAccount {
        id: id.to_owned(),
        email: email(&format!("{id}@example.org")),
        role,
        password_hash: Some(PasswordHash::new(format!("hash of {id}"))),
        identity: None,
        needs_setup: false,
        admission: Admission::Always,
        at: at(0),
    }
}

async fn create(stores: &AccountStores, new: NewAccount) -> Account {
    stores
        .accounts
        .create(new, entry(AuditAction::AccountCreated, 0))
        .await
        .expect("created")
}

/// Creates the first administrator and a user with id `ann`.
async fn admin_and_ann(stores: &AccountStores) -> (Account, Account) {
    let admin = create(stores, new_account("root", Role::Admin)).await;
    let ann = create(stores, new_account("ann", Role::User)).await;
    (admin, ann)
}

async fn start(stores: &AccountStores, session: Session) {
    let new = NewSession {
        session,
        if_password: None,
    };
    stores
        .sessions
        .start(new, entry(AuditAction::SignIn, 1))
        .await
        .expect("started");
}

/// Returns the recorded actions, the oldest first.
async fn actions(stores: &AccountStores) -> Vec<AuditAction> {
    let query = AuditQuery {
        limit: 1_000,
        ..AuditQuery::default()
    };
    let mut entries = stores.audit.list(&query).await.expect("read");
    entries.reverse();
    entries.iter().map(|entry| entry.entry.action).collect()
}

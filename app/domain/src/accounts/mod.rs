//! Accounts of people: records, sign-in rules and ports.
//!
//! All decisions are pure functions over records. A store makes those that concern several rows
//! (the first administrator, the last one, unique e-mails) within the transaction of the change, so
//! that they hold for all nodes. Each change writes its audit entry in the same transaction.

mod account;
mod account_store;
mod address;
mod audit;
mod change;
mod email;
mod error;
mod foreign_user;
mod in_memory;
mod login_limits;
mod password_rules;
mod session;
mod session_store;
mod used_state_store;
mod user_data;

pub use account::{Account, MAX_PROVIDER, MAX_SUBJECT, PasswordHash, ProviderIdentity, Role};
pub use account_store::{
    AccountCensus, AccountPage, AccountQuery, AccountStore, Admission, ImportOutcome, NewAccount,
    new_account_id,
};
pub use address::AddressKey;
pub use audit::{
    AuditAction, AuditEntry, AuditLog, AuditOutcome, AuditQuery, MAX_AGENT, NewAuditEntry,
    short_agent,
};
pub use change::{AccountChange, SessionsAfter, check_administrators};
pub use email::{Email, InvalidEmail, MAX_EMAIL};
pub use error::AccountError;
pub use foreign_user::ForeignUser;
pub use in_memory::InMemoryAccounts;
pub use login_limits::{
    ACCOUNT_RULE, ADDRESS_FAILURES, ADDRESS_WINDOW, AttemptKey, FailureRun, LoginCounters,
    LoginLimitStore, LoginVerdict, PAIR_RULE, PENDING_TIMEOUT, REGISTRATION_WINDOW, RunRule,
    decide_login, registration_wait,
};
pub use password_rules::{InvalidPassword, MAX_PASSWORD, MIN_PASSWORD, check_password};
pub use session::{
    EXTENSION_INTERVAL, HARD_END, IDLE_END, Session, SessionRefusal, TokenHash, check_session,
};
pub use session_store::{NewSession, SessionStore};
pub use used_state_store::UsedStateStore;
pub use user_data::{DeletedData, UserData};

/// All ports of accounts of one installation.
#[derive(Debug, Clone)]
pub struct AccountStores {
    /// Accounts.
    pub accounts: std::sync::Arc<dyn AccountStore>,
    /// Sessions.
    pub sessions: std::sync::Arc<dyn SessionStore>,
    /// Limits of sign-in and registration.
    pub limits: std::sync::Arc<dyn LoginLimitStore>,
    /// Used states of sign-ins through providers.
    pub used_states: std::sync::Arc<dyn UsedStateStore>,
    /// Audit log.
    pub audit: std::sync::Arc<dyn AuditLog>,
}

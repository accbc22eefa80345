//! Port of accounts.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_core::actor_context::DEFAULT_USER_ID;
use deerflow_runtime::runs::store::StoreError;

use super::account::{Account, PasswordHash, ProviderIdentity, Role};
use super::audit::NewAuditEntry;
use super::change::{AccountChange, SessionsAfter};
use super::email::Email;
use super::error::AccountError;

/// Condition of a creation, checked within its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// No condition.
    Always,
    /// There is no administrator, disabled ones included.
    NoAdministrator,
}

/// Account to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAccount {
    /// Id, unless this is the first administrator, see [`new_account_id`].
    pub id: String,
    /// E-mail.
    pub email: Email,
    /// Role.
    pub role: Role,
    /// Hash of the password.
    pub password_hash: Option<PasswordHash>,
    /// Identity at a provider.
    pub identity: Option<ProviderIdentity>,
    /// `true` if the person has to choose a new password.
    pub needs_setup: bool,
    /// Condition.
    pub admission: Admission,
    /// Creation time.
    pub at: DateTime<Utc>,
}

impl NewAccount {
    /// Returns the record with this id.
    pub fn into_account(self, id: String) -> Account {
        Account {
            id,
            email: self.email,
            role: self.role,
            password_hash: self.password_hash,
            identity: self.identity,
            needs_setup: self.needs_setup,
            disabled_at: None,
            created_at: self.at,
            updated_at: self.at,
            last_login_at: None,
        }
    }
}

/// Returns the id of a new account. The first administrator is [`DEFAULT_USER_ID`], so that all
/// rows and files of the time before sign-in belong to that account without a move.
pub fn new_account_id(role: Role, administrators: u64, proposed: &str) -> String {
    if role == Role::Admin && administrators == 0 {
        DEFAULT_USER_ID.to_owned()
    } else {
        proposed.to_owned()
    }
}

/// Numbers of accounts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AccountCensus {
    /// All accounts.
    pub accounts: u64,
    /// Administrators, disabled ones included.
    pub administrators: u64,
}

/// Selection of accounts, in order of creation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountQuery {
    /// Only accounts with this text in their e-mail or equal to their id, whatever the case.
    pub q: Option<String>,
    /// Only accounts with this role.
    pub role: Option<Role>,
    /// Maximum number of accounts.
    pub limit: u64,
    /// Number of accounts to skip.
    pub offset: u64,
}

/// Part of a list of accounts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountPage {
    /// Accounts.
    pub accounts: Vec<Account>,
    /// Number of selected accounts without limit and offset.
    pub total: u64,
}

/// Result of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportOutcome {
    /// Ids of the stored accounts.
    pub imported: Vec<String>,
    /// Ids of accounts that exist, whose e-mail or identity exists, in order.
    pub skipped: Vec<String>,
}

/// Stores accounts. All rules hold for all nodes.
#[async_trait]
pub trait AccountStore: Send + Sync + std::fmt::Debug {
    /// Creates an account. Of several concurrent creations with [`Admission::NoAdministrator`] one
    /// takes effect, and the others are refused with [`AccountError::AdministratorExists`]. If
    /// the entry names no object, it gets the id of the account.
    async fn create(&self, new: NewAccount, entry: NewAuditEntry) -> Result<Account, AccountError>;

    /// Stores accounts with their ids, in order, all or none. Existing ids, e-mails and
    /// identities are skipped. Each stored account gets a copy of the entry with its id.
    async fn import(
        &self,
        accounts: Vec<Account>,
        entry: NewAuditEntry,
    ) -> Result<ImportOutcome, AccountError>;

    /// Returns an account.
    async fn find(&self, id: &str) -> Result<Option<Account>, StoreError>;

    /// Returns the account with this e-mail.
    async fn find_by_email(&self, email: &Email) -> Result<Option<Account>, StoreError>;

    /// Returns the account with this identity.
    async fn find_by_identity(
        &self,
        identity: &ProviderIdentity,
    ) -> Result<Option<Account>, StoreError>;

    /// Returns the selected accounts.
    async fn list(&self, query: &AccountQuery) -> Result<AccountPage, StoreError>;

    /// Returns the numbers of accounts.
    async fn census(&self) -> Result<AccountCensus, StoreError>;

    /// Changes an account and its sessions, and writes the entries, in one transaction. Returns the
    /// changed account.
    async fn change(
        &self,
        id: &str,
        change: AccountChange,
        sessions: SessionsAfter,
        entries: Vec<NewAuditEntry>,
        at: DateTime<Utc>,
    ) -> Result<Account, AccountError>;

    /// Replaces the hash of an unchanged password by one of a current algorithm; `false` if the
    /// stored hash is not `old`. Sessions continue, and nothing is audited.
    async fn rehash(
        &self,
        id: &str,
        old: &PasswordHash,
        new: PasswordHash,
    ) -> Result<bool, StoreError>;

    /// Deletes an account with its sessions and revokes its API keys. The last enabled
    /// administrator is refused.
    async fn delete(&self, id: &str, entry: NewAuditEntry) -> Result<(), AccountError>;
}

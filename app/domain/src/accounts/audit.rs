//! Audit log: who did what to which object. An entry never contains a password, token or code.

use std::fmt;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_runtime::runs::store::StoreError;

/// Maximum length of a recorded user agent, in characters.
pub const MAX_AGENT: usize = 200;

/// Shortens a user agent to [`MAX_AGENT`] characters.
pub fn short_agent(agent: &str) -> String {
    agent.chars().take(MAX_AGENT).collect()
}

macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$item_doc:meta])* $item:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$item_doc])* $item,)*
        }

        impl $name {
            /// All values.
            pub const ALL: &'static [Self] = &[$(Self::$item),*];

            /// Returns the name on the wire and in the database.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$item => $text,)*
                }
            }

            /// Returns the value with this name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == name)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

named! {
    /// Recorded kind of action.
    AuditAction {
        /// Sign-in, successful or not.
        SignIn = "sign_in",
        /// Sign-in of an account from an address was locked for some time.
        SignInLocked = "sign_in.locked",
        /// Sessions were ended.
        SessionEnded = "session.ended",
        /// An account was created.
        AccountCreated = "account.created",
        /// An account was imported.
        AccountImported = "account.imported",
        /// The e-mail of an account was changed.
        AccountEmail = "account.email",
        /// An identity was linked to an account.
        AccountLinked = "account.linked",
        /// An account was disabled.
        AccountDisabled = "account.disabled",
        /// An account was enabled.
        AccountEnabled = "account.enabled",
        /// An account was deleted with its data.
        AccountDeleted = "account.deleted",
        /// The password was changed by its owner.
        PasswordChanged = "password.changed",
        /// The password was reset by an operator.
        PasswordReset = "password.reset",
        /// The role of an account was changed.
        RoleChanged = "role.changed",
        /// An API key was created.
        KeyCreated = "key.created",
        /// An API key was revoked.
        KeyRevoked = "key.revoked",
        /// The settings of MCP servers were changed.
        McpChanged = "mcp.changed",
        /// A skill was installed, removed, enabled or disabled.
        SkillChanged = "skill.changed",
        /// The settings of chat channels were changed.
        ChannelChanged = "channel.changed",
    }
}

named! {
    /// Recorded outcome of an action.
    AuditOutcome {
        /// The action took effect.
        Success = "success",
        /// The action failed, such as a sign-in with a wrong password.
        Failure = "failure",
        /// The action was refused by a rule, such as a limit.
        Refused = "refused",
    }
}

/// Entry to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAuditEntry {
    /// Time.
    pub at: DateTime<Utc>,
    /// User id of the actor; `None` if the caller is not signed in or is the operating system's
    /// operator.
    pub actor: Option<String>,
    /// Client address.
    pub address: Option<String>,
    /// User agent.
    pub agent: Option<String>,
    /// Action.
    pub action: AuditAction,
    /// Object of the action, such as an account's id.
    pub object: Option<String>,
    /// Outcome.
    pub outcome: AuditOutcome,
}

impl NewAuditEntry {
    /// Creates a successful action without client.
    pub fn new(action: AuditAction, at: DateTime<Utc>) -> Self {
        Self {
            at,
            actor: None,
            address: None,
            agent: None,
            action,
            object: None,
            outcome: AuditOutcome::Success,
        }
    }

    /// Sets the actor.
    pub fn by(mut self, actor: &str) -> Self {
        self.actor = Some(actor.to_owned());
        self
    }

    /// Sets client address and user agent, which is shortened.
    pub fn from_client(mut self, address: Option<&str>, agent: Option<&str>) -> Self {
        self.address = address.map(str::to_owned);
        self.agent = agent.map(short_agent);
        self
    }

    /// Sets the object.
    pub fn on(mut self, object: impl Into<String>) -> Self {
        self.object = Some(object.into());
        self
    }

    /// Sets the outcome.
    pub fn with_outcome(mut self, outcome: AuditOutcome) -> Self {
        self.outcome = outcome;
        self
    }
}

/// Stored entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Position, which grows with each entry.
    pub seq: i64,
    /// Content.
    pub entry: NewAuditEntry,
}

impl AuditEntry {
    /// Returns the entry as clients and operators see it.
    pub fn to_json(&self) -> serde_json::Value {
        let Self { seq, entry } = self;
        serde_json::json!({
            "seq": seq,
            "at": entry.at,
            "actor": entry.actor,
            "address": entry.address,
            "agent": entry.agent,
            "action": entry.action.as_str(),
            "object": entry.object,
            "outcome": entry.outcome.as_str(),
        })
    }
}

/// Selection of entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditQuery {
    /// Only entries with this actor or this object.
    pub user: Option<String>,
    /// Only entries of this action.
    pub action: Option<AuditAction>,
    /// Only entries before this position.
    pub before: Option<i64>,
    /// Maximum number of entries.
    pub limit: u64,
}

/// Stores the audit log.
#[async_trait]
pub trait AuditLog: Send + Sync + fmt::Debug {
    /// Writes an entry. An action of this crate's stores writes its entry in its own transaction.
    async fn append(&self, entry: NewAuditEntry) -> Result<(), StoreError>;

    /// Returns the selected entries, the newest first.
    async fn list(&self, query: &AuditQuery) -> Result<Vec<AuditEntry>, StoreError>;

    /// Deletes entries older than `before`; returns their number.
    async fn purge(&self, before: DateTime<Utc>) -> Result<u64, StoreError>;
}

//! Account of a person, and its parts.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};

use super::email::Email;

/// Maximum length of the name of an identity provider, in characters.
pub const MAX_PROVIDER: usize = 32;
/// Maximum length of an identity provider's id of a person, in characters.
pub const MAX_SUBJECT: usize = 128;

/// Role of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Administers the installation.
    Admin,
    /// Uses it.
    User,
}

impl Role {
    /// Returns the name on the wire and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::User => "user",
        }
    }
}

impl FromStr for Role {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "admin" => Ok(Self::Admin),
            "user" => Ok(Self::User),
            _ => Err(()),
        }
    }
}

/// Hash of a password in the text form of its algorithm. Hidden in debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(String);

impl PasswordHash {
    /// Wraps the text form.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text form.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash(..)")
    }
}

/// Person at an identity provider.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProviderIdentity {
    provider: String,
    subject: String,
}

impl ProviderIdentity {
    /// Creates an identity. Returns `None` if a part is empty or longer than [`MAX_PROVIDER`] or
    /// [`MAX_SUBJECT`] characters: a shortened id could be the id of another person.
    pub fn new(provider: impl Into<String>, subject: impl Into<String>) -> Option<Self> {
        let (provider, subject) = (provider.into(), subject.into());
        let fits = |text: &str, maximum| {
            !text.is_empty() && !text.contains('\0') && text.chars().count() <= maximum
        };
        (fits(&provider, MAX_PROVIDER) && fits(&subject, MAX_SUBJECT))
            .then_some(Self { provider, subject })
    }

    /// Returns the name of the provider.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// Returns the provider's id of the person.
    pub fn subject(&self) -> &str {
        &self.subject
    }
}

/// Account of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Id, which names the user in all rows and files.
    pub id: String,
    /// E-mail, unique.
    pub email: Email,
    /// Role.
    pub role: Role,
    /// Hash of the password; `None` if the person signs in through a provider only.
    pub password_hash: Option<PasswordHash>,
    /// Identity at a provider, unique.
    pub identity: Option<ProviderIdentity>,
    /// `true` if the person has to choose a new password.
    pub needs_setup: bool,
    /// Time since which the account is disabled.
    pub disabled_at: Option<DateTime<Utc>>,
    /// Creation time.
    pub created_at: DateTime<Utc>,
    /// Time of the last change, apart from sign-ins.
    pub updated_at: DateTime<Utc>,
    /// Time of the last sign-in.
    pub last_login_at: Option<DateTime<Utc>>,
}

impl Account {
    /// Reports whether the account may be used.
    pub fn is_enabled(&self) -> bool {
        self.disabled_at.is_none()
    }

    /// Returns the account as administrators and operators see it, without its hash.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "id": self.id,
            "email": self.email.as_str(),
            "role": self.role.as_str(),
            "disabled": !self.is_enabled(),
            "disabled_at": self.disabled_at,
            "needs_setup": self.needs_setup,
            "has_password": self.password_hash.is_some(),
            "oauth_provider": self.identity.as_ref().map(ProviderIdentity::provider),
            "created_at": self.created_at,
            "updated_at": self.updated_at,
            "last_login_at": self.last_login_at,
        })
    }

    /// Reports whether this is an administrator that may act.
    pub fn is_enabled_admin(&self) -> bool {
        self.role == Role::Admin && self.is_enabled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_with_empty_or_long_part_is_refused() {
        assert!(ProviderIdentity::new("p".repeat(32), "s".repeat(128)).is_some());
        for (provider, subject) in [
            ("p".repeat(33), "s".to_owned()),
            ("p".to_owned(), "s".repeat(129)),
            (String::new(), "s".to_owned()),
            ("p".to_owned(), String::new()),
            ("p".to_owned(), "a\0b".to_owned()),
        ] {
            assert_eq!(ProviderIdentity::new(provider, subject), None);
        }
    }

    #[test]
    fn password_hash_is_hidden_in_debug() {
        assert!(!format!("{:?}", PasswordHash::new("$argon2id$x")).contains("argon"));
    }
}

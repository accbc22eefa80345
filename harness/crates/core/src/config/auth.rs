//! `auth`: sign-in of users.

use serde::Deserialize;

use super::open_keys::OpenKeys;

/// Sign-in of users.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AuthConfig {
    /// Accounts in this installation.
    pub local: LocalAuthConfig,
    /// Has no effect: sign-in through identity providers is not supported yet.
    pub oidc: OpenKeys,
}

/// Accounts in this installation.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LocalAuthConfig {
    /// Has no effect: accounts are not supported yet.
    pub allow_registration: bool,
}

impl Default for LocalAuthConfig {
    fn default() -> Self {
        Self {
            allow_registration: true,
        }
    }
}

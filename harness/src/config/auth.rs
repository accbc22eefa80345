//! `auth`: who may sign in, and how.

use serde::Deserialize;

use super::open_keys::OpenKeys;

/// Sign-in.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AuthConfig {
    /// Accounts kept here.
    pub local: LocalAuthConfig,
    /// Accounts kept by an identity provider, as written.
    pub oidc: OpenKeys,
}

/// Accounts kept here.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LocalAuthConfig {
    /// Whether visitors may register themselves.
    pub allow_registration: bool,
}

impl Default for LocalAuthConfig {
    fn default() -> Self {
        Self {
            allow_registration: true,
        }
    }
}

//! `auth`: sign-in of users.

use serde::Deserialize;

use super::open_keys::OpenKeys;

/// Sign-in of users.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AuthConfig {
    /// Accounts in this installation.
    pub local: LocalAuthConfig,
    /// Has no effect: sign-in through identity providers is not supported yet.
    pub oidc: OpenKeys,
    /// Time after a start in which other machines may create the first administrator, in minutes; 0
    /// means never.
    pub setup_minutes: u32,
    /// Maximum number of registrations of an address within an hour; 0 means no limit.
    pub registrations_per_hour: u32,
}

impl Default for AuthConfig {
    fn default() -> Self {
        Self {
            local: LocalAuthConfig::default(),
            oidc: OpenKeys::default(),
            setup_minutes: 30,
            registrations_per_hour: 20,
        }
    }
}

/// Accounts in this installation.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LocalAuthConfig {
    /// `true` if people may create accounts for themselves.
    pub allow_registration: bool,
}

impl Default for LocalAuthConfig {
    fn default() -> Self {
        Self {
            allow_registration: true,
        }
    }
}

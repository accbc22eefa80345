//! `auth`: sign-in of users.

use serde::Deserialize;

use super::check::Checker;
use super::oidc::OidcConfig;

/// Sign-in of users.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AuthConfig {
    /// Accounts in this installation.
    pub local: LocalAuthConfig,
    /// Identity providers.
    pub oidc: OidcConfig,
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
            oidc: OidcConfig::default(),
            setup_minutes: 30,
            registrations_per_hour: 20,
        }
    }
}

impl AuthConfig {
    pub(super) fn check(&self, check: &mut Checker) {
        check.under("oidc", |check| self.oidc.check(check));
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

//! Port of the configured rules of sign-in.

use std::fmt;
use std::time::Duration;

use harness::config::OidcConfig;

/// Rules of sign-in, as the current configuration states them.
pub trait SignInRules: Send + Sync + fmt::Debug {
    /// `true` if people may create accounts for themselves.
    fn allows_registration(&self) -> bool;

    /// Maximum number of registrations of an address within an hour; 0 means no limit.
    fn registrations_per_hour(&self) -> u32;

    /// Time after the start in which other machines may create the first administrator.
    fn setup_time(&self) -> Duration;

    /// Identity providers.
    fn oidc(&self) -> OidcConfig;
}

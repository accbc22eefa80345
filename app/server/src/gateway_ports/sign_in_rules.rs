//! Rules of sign-in from the configuration.

use std::time::Duration;

use deerflow_gateway::ports::SignInRules;
use harness::config::OidcConfig;

use crate::config::ConfigHandle;

/// Answers from the current configuration.
#[derive(Debug)]
pub(crate) struct ConfigSignInRules(pub(crate) ConfigHandle);

impl SignInRules for ConfigSignInRules {
    fn allows_registration(&self) -> bool {
        self.0.current().auth.local.allow_registration
    }

    fn registrations_per_hour(&self) -> u32 {
        self.0.current().auth.registrations_per_hour
    }

    fn setup_time(&self) -> Duration {
        Duration::from_secs(u64::from(self.0.current().auth.setup_minutes) * 60)
    }

    fn oidc(&self) -> OidcConfig {
        self.0.current().auth.oidc.clone()
    }
}

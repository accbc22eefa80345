//! Cookie of a sign-in that waits for its provider.

use crate::guard::cookies::{SameSite, SetCookie};

/// Prefix of the names of the cookies.
const PREFIX: &str = "df_oidc_state_";

/// Returns the path to which a provider sends browsers back.
pub(super) fn callback_path(provider: &str) -> String {
    format!("/api/v1/auth/callback/{provider}")
}

/// Returns the name of the cookie of sign-ins at a provider.
pub(super) fn state_cookie_name(provider: &str) -> String {
    format!("{PREFIX}{provider}")
}

/// Cookie of a sign-in at a provider.
#[derive(Debug)]
pub(super) struct StateCookie {
    name: String,
    path: String,
    value: String,
    max_age: u64,
}

impl StateCookie {
    /// Creates a cookie that lives for `max_age` seconds; 0 deletes it.
    pub(super) fn new(provider: &str, value: String, max_age: u64) -> Self {
        Self {
            name: state_cookie_name(provider),
            path: callback_path(provider),
            value,
            max_age,
        }
    }

    /// Returns the cookie to set. `Lax`, because a page of the provider leads back here.
    pub(super) fn to_set(&self, secure: bool) -> SetCookie<'_> {
        SetCookie {
            name: &self.name,
            value: &self.value,
            path: &self.path,
            http_only: true,
            secure,
            same_site: SameSite::Lax,
            max_age: Some(self.max_age),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookie_is_sent_to_the_callback_of_its_provider_only() {
        let cookie = StateCookie::new("corp", "v".to_owned(), 300);
        assert_eq!(
            cookie.to_set(true).header().unwrap(),
            "df_oidc_state_corp=v; Path=/api/v1/auth/callback/corp; Max-Age=300; SameSite=lax; HttpOnly; Secure"
        );
    }
}

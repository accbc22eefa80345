//! `auth.oidc`: sign-in through identity providers that speak OpenID Connect.

use indexmap::IndexMap;
use secrecy::SecretString;
use serde::Deserialize;

use super::check::Checker;
use super::open_keys::optional_secret;

/// Maximum length of the name of a provider, which accounts store.
const MAX_NAME: usize = 32;

/// Identity providers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct OidcConfig {
    /// `true` if people may sign in through the providers.
    pub enabled: bool,
    /// Address of the web UI, to which browsers return; by default the host of the gateway.
    pub frontend_base_url: Option<String>,
    /// Providers by name, in the order of the file.
    #[serde(deserialize_with = "map_or_null")]
    pub providers: IndexMap<String, OidcProviderConfig>,
}

/// Identity provider.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct OidcProviderConfig {
    /// Name that people see.
    pub display_name: String,
    /// Issuer: the address below which the discovery document is.
    pub issuer: String,
    /// Id of this installation at the provider.
    pub client_id: String,
    /// Secret of this installation at the provider.
    #[serde(deserialize_with = "optional_secret")]
    pub client_secret: Option<SecretString>,
    /// Address to which the provider sends browsers back; by default
    /// `/api/v1/auth/callback/NAME` on the host of the request.
    pub redirect_uri: Option<String>,
    /// Requested scopes.
    pub scopes: Vec<String>,
    /// Authentication of this installation at the token endpoint.
    pub token_endpoint_auth_method: TokenEndpointAuthMethod,
    /// `true` if the first sign-in of a person creates an account.
    pub auto_create_users: bool,
    /// `true` if an account requires an e-mail that the provider has verified.
    pub require_verified_email: bool,
    /// Domains of e-mails that may sign in; empty for all.
    pub allowed_email_domains: Vec<String>,
    /// Verified e-mails whose new accounts are administrators.
    pub admin_emails: Vec<String>,
    /// `true` for PKCE with `S256`.
    pub pkce_enabled: bool,
    /// `true` if the ID token must repeat a nonce.
    pub nonce_enabled: bool,
    /// Overrides the authorization endpoint of the discovery document.
    pub authorization_endpoint: Option<String>,
    /// Overrides the token endpoint of the discovery document.
    pub token_endpoint: Option<String>,
    /// Overrides the userinfo endpoint of the discovery document.
    pub userinfo_endpoint: Option<String>,
    /// Overrides the address of the keys in the discovery document.
    pub jwks_uri: Option<String>,
    /// `true` if a verified e-mail joins an existing account with this e-mail.
    pub link_by_verified_email: bool,
}

/// Authentication of a client at a token endpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TokenEndpointAuthMethod {
    /// Id and secret in the body.
    #[default]
    ClientSecretPost,
    /// Id and secret in the `Authorization` header.
    ClientSecretBasic,
    /// Id only.
    None,
}

impl Default for OidcProviderConfig {
    fn default() -> Self {
        Self {
            display_name: String::new(),
            issuer: String::new(),
            client_id: String::new(),
            client_secret: None,
            redirect_uri: None,
            scopes: ["openid", "email", "profile"].map(str::to_owned).to_vec(),
            token_endpoint_auth_method: TokenEndpointAuthMethod::default(),
            auto_create_users: true,
            require_verified_email: true,
            allowed_email_domains: Vec::new(),
            admin_emails: Vec::new(),
            pkce_enabled: true,
            nonce_enabled: true,
            authorization_endpoint: None,
            token_endpoint: None,
            userinfo_endpoint: None,
            jwks_uri: None,
            link_by_verified_email: false,
        }
    }
}

impl OidcConfig {
    /// Returns the provider with this name, if sign-in through providers is enabled.
    pub fn provider(&self, name: &str) -> Option<&OidcProviderConfig> {
        self.providers.get(name).filter(|_| self.enabled)
    }

    /// Sorts the providers as `names` lists them. Layers of a configuration do not preserve the
    /// order of a file.
    pub fn sort_providers(&mut self, names: &[String]) {
        let position = |name: &String| names.iter().position(|other| other == name);
        self.providers
            .sort_by_key(|name, _| position(name).unwrap_or(usize::MAX));
    }

    /// Checks the values of an enabled section.
    pub(super) fn check(&self, check: &mut Checker) {
        if !self.enabled {
            return;
        }
        check_address(check, "frontend_base_url", self.frontend_base_url.as_ref());
        if self.providers.is_empty() {
            check.refuse(
                "providers",
                "empty",
                "at least one provider, since `enabled` is true",
            );
        }
        check.under("providers", |check| {
            for (name, provider) in &self.providers {
                if !is_name(name) {
                    check.refuse(
                        name,
                        "a name with other characters or too long",
                        format!("names of at most {MAX_NAME} letters, digits, `_` and `-`"),
                    );
                }
                check.under(name, |check| provider.check(check));
            }
        });
    }
}

impl OidcProviderConfig {
    fn check(&self, check: &mut Checker) {
        check.not_blank("display_name", &self.display_name);
        check.not_blank("client_id", &self.client_id);
        if is_web_address(&self.issuer) {
            if self.issuer.contains(['?', '#']) {
                check.refuse(
                    "issuer",
                    "an address with a query",
                    "an address without one",
                );
            }
        } else {
            check.refuse("issuer", describe(&self.issuer), ADDRESS);
        }
        let addresses = [
            ("redirect_uri", &self.redirect_uri),
            ("authorization_endpoint", &self.authorization_endpoint),
            ("token_endpoint", &self.token_endpoint),
            ("userinfo_endpoint", &self.userinfo_endpoint),
            ("jwks_uri", &self.jwks_uri),
        ];
        for (key, address) in addresses {
            check_address(check, key, address.as_ref());
        }
        if !self.scopes.iter().any(|scope| scope == "openid") {
            check.refuse("scopes", "a list without `openid`", "a list with `openid`");
        }
        let needs_secret = self.token_endpoint_auth_method != TokenEndpointAuthMethod::None;
        if needs_secret && self.client_secret.is_none() {
            check.refuse(
                "client_secret",
                "empty",
                "a secret, unless `token_endpoint_auth_method` is none",
            );
        }
        check.under("allowed_email_domains", |check| {
            for (position, domain) in self.allowed_email_domains.iter().enumerate() {
                if domain.is_empty() || domain.contains(['@', ' ', '*', '/']) {
                    check.refuse(
                        &position.to_string(),
                        describe(domain),
                        "a domain such as example.com",
                    );
                }
            }
        });
        check.under("admin_emails", |check| {
            for (position, email) in self.admin_emails.iter().enumerate() {
                if !email.contains('@') {
                    check.refuse(&position.to_string(), describe(email), "an e-mail address");
                }
            }
        });
    }
}

/// Reads a map; null, as in `providers:` without entries, counts as empty.
fn map_or_null<'de, D>(deserializer: D) -> Result<IndexMap<String, OidcProviderConfig>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

const ADDRESS: &str = "an http or https address such as https://id.example.com";

fn describe(text: &str) -> String {
    if text.is_empty() {
        "empty".to_owned()
    } else {
        format!("{text:?}")
    }
}

fn check_address(check: &mut Checker, key: &str, address: Option<&String>) {
    if let Some(address) = address.filter(|address| !is_web_address(address)) {
        check.refuse(key, describe(address), ADDRESS);
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MAX_NAME
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// `true` for `http` and `https` addresses with a host and without a user.
fn is_web_address(text: &str) -> bool {
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    let has_blank = text
        .chars()
        .any(|character| character.is_whitespace() || character.is_control() || character == '\\');
    rest.is_some_and(|rest| {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        !host.is_empty() && !host.starts_with(':') && !host.contains('@')
    }) && !has_blank
}

#[cfg(test)]
#[path = "oidc_tests.rs"]
mod tests;

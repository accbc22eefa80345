//! OpenID Connect: the sign-in at an identity provider, from the redirect to the verified person.
//!
//! A person is sent to the provider with a fresh state, nonce and code verifier
//! ([`PendingSignIn`]), which the browser holds in a signed cookie. The provider sends the browser
//! back with a code. [`ProviderClient::exchange`] exchanges it for an ID token and verifies that.

mod endpoints;
mod error;
mod exchange;
mod http;
mod pending;
mod verify;

use std::pin::Pin;
use std::time::Duration;

use harness::clock::Clock;
use harness::config::OidcProviderConfig;
use openidconnect::core::{CoreAuthenticationFlow, CoreClient, CoreJsonWebKeySet};
use openidconnect::{ClientId, CsrfToken, Nonce, PkceCodeChallenge, RedirectUrl, Scope};
use reqwest::Url;
use tokio::time::timeout;

use self::endpoints::{Directory, Endpoints};
use self::http::ProviderHttp;

pub use error::ProviderError;
pub use pending::{DEFAULT_NEXT, Destination, PendingSignIn, STATE_AGE, local_path};

/// Maximum duration of all calls to a provider for one request of a browser.
const PROVIDER_TIMEOUT: Duration = Duration::from_secs(10);
/// Scope of OpenID Connect, which the library requests by itself.
const OPENID: &str = "openid";

/// Person at a provider, as its verified statements describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderPerson {
    /// Id of the person, unique at the provider.
    pub subject: String,
    /// E-mail, in any form.
    pub email: Option<String>,
    /// `true` if the provider states that the e-mail belongs to the person.
    pub email_verified: bool,
}

/// Answer of a provider, as a browser delivers it.
#[derive(Debug, Clone)]
pub struct Callback<'a> {
    /// Authorization code.
    pub code: &'a str,
    /// Issuer (RFC 9207).
    pub issuer: Option<&'a str>,
}

/// Client of all identity providers.
#[derive(Debug)]
pub struct ProviderClient {
    http: ProviderHttp,
    directory: Directory,
    clock: std::sync::Arc<dyn Clock>,
}

impl ProviderClient {
    /// Creates a client, which uses the proxies of the environment.
    ///
    /// # Errors
    /// An error if the certificates of the system cannot be read.
    pub fn new(clock: std::sync::Arc<dyn Clock>) -> Result<Self, reqwest::Error> {
        Ok(Self {
            http: ProviderHttp::new()?,
            directory: Directory::default(),
            clock,
        })
    }

    /// Begins a sign-in at the provider `name`. Returns the address to which the browser goes, and
    /// what the callback needs.
    pub async fn begin(
        &self,
        name: &str,
        config: &OidcProviderConfig,
        destination: Destination,
    ) -> Result<(Url, PendingSignIn), ProviderError> {
        let endpoints = self.directory.endpoints(&self.http, name, config);
        let endpoints = timeout(PROVIDER_TIMEOUT, endpoints)
            .await
            .unwrap_or(Err(ProviderError::Timeout))?;
        let pending = PendingSignIn::new(destination, config);
        Ok((authorization_url(&endpoints, config, &pending)?, pending))
    }

    /// Exchanges the code of a callback for the person, within 10 seconds.
    pub async fn exchange(
        &self,
        name: &str,
        config: &OidcProviderConfig,
        pending: &PendingSignIn,
        callback: Callback<'_>,
    ) -> Result<ProviderPerson, ProviderError> {
        // The type states that the calls may move between threads.
        let person: Pin<
            Box<dyn Future<Output = Result<ProviderPerson, ProviderError>> + Send + '_>,
        > = Box::pin(self.person(name, config, pending, callback));
        timeout(PROVIDER_TIMEOUT, person)
            .await
            .unwrap_or(Err(ProviderError::Timeout))
    }
}

/// Returns the address of the authorization request.
fn authorization_url(
    endpoints: &Endpoints,
    config: &OidcProviderConfig,
    pending: &PendingSignIn,
) -> Result<Url, ProviderError> {
    let client = CoreClient::new(
        ClientId::new(config.client_id.clone()),
        endpoints.issuer.clone(),
        CoreJsonWebKeySet::default(),
    )
    .set_auth_uri(endpoints.authorization.clone())
    .set_redirect_uri(redirect_url(pending)?);
    let (state, nonce) = (pending.state.clone(), pending.nonce.clone());
    let mut request = client
        .authorize_url(
            CoreAuthenticationFlow::AuthorizationCode,
            || CsrfToken::new(state),
            || Nonce::new(nonce.unwrap_or_default()),
        )
        .add_scopes(
            config
                .scopes
                .iter()
                .filter(|scope| *scope != OPENID)
                .map(|scope| Scope::new(scope.clone())),
        );
    if let Some(verifier) = pending.verifier() {
        request =
            request.set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier));
    }
    let (mut url, _, _) = request.url();
    if pending.nonce.is_none() {
        remove_parameter(&mut url, "nonce");
    }
    Ok(url)
}

fn redirect_url(pending: &PendingSignIn) -> Result<RedirectUrl, ProviderError> {
    RedirectUrl::new(pending.redirect_uri.clone())
        .map_err(|_| ProviderError::Invalid("the redirect URI is not an address".to_owned()))
}

/// Removes a query parameter, which the library adds always.
fn remove_parameter(url: &mut Url, name: &str) {
    let others: Vec<(String, String)> = url
        .query_pairs()
        .filter(|(key, _)| key != name)
        .map(|(key, value)| (key.into_owned(), value.into_owned()))
        .collect();
    url.query_pairs_mut().clear().extend_pairs(others);
}

#[cfg(test)]
#[path = "oidc_tests.rs"]
mod tests;

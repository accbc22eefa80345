//! Exchange of an authorization code for a person.

use std::time::Duration;

use harness::config::{OidcProviderConfig, TokenEndpointAuthMethod};
use openidconnect::core::{
    CoreClient, CoreErrorResponseType, CoreJsonWebKeySet, CoreTokenResponse, CoreUserInfoClaims,
};
use openidconnect::{
    AuthType, AuthorizationCode, ClaimsVerificationError, ClientId, ClientSecret, ErrorResponse,
    OAuth2TokenResponse as _, RequestTokenError, SubjectIdentifier, TokenResponse as _,
    UserInfoError,
};
use secrecy::ExposeSecret as _;
use tokio::time::timeout;

use super::endpoints::Endpoints;
use super::error::ProviderError;
use super::verify::{IdClaims, verify};
use super::{Callback, PendingSignIn, ProviderClient, ProviderPerson, redirect_url};

/// Timeout of the userinfo, without which a sign-in can succeed.
const USERINFO_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum length of an error code of a provider in a text, in characters.
const MAX_CODE: usize = 60;

impl ProviderClient {
    pub(super) async fn person(
        &self,
        name: &str,
        config: &OidcProviderConfig,
        pending: &PendingSignIn,
        callback: Callback<'_>,
    ) -> Result<ProviderPerson, ProviderError> {
        let endpoints = self.directory.endpoints(&self.http, name, config).await?;
        check_issuer(&endpoints, callback.issuer)?;
        let tokens = self
            .tokens(config, &endpoints, pending, callback.code)
            .await?;
        let claims = self
            .claims(name, config, &endpoints, pending, &tokens)
            .await?;
        let stated = self
            .userinfo(name, config, &endpoints, &claims, &tokens)
            .await?;
        Ok(merge(claims, stated))
    }

    /// Redeems the code at the token endpoint.
    async fn tokens(
        &self,
        config: &OidcProviderConfig,
        endpoints: &Endpoints,
        pending: &PendingSignIn,
        code: &str,
    ) -> Result<CoreTokenResponse, ProviderError> {
        let mut client = client(config, endpoints)
            .set_redirect_uri(redirect_url(pending)?)
            .set_auth_type(match config.token_endpoint_auth_method {
                TokenEndpointAuthMethod::ClientSecretBasic => AuthType::BasicAuth,
                _ => AuthType::RequestBody,
            });
        let secret = config
            .client_secret
            .as_ref()
            .filter(|_| config.token_endpoint_auth_method != TokenEndpointAuthMethod::None);
        if let Some(secret) = secret {
            client = client.set_client_secret(ClientSecret::new(secret.expose_secret().to_owned()));
        }
        let client = client.set_token_uri(endpoints.token.clone());
        let mut request = client.exchange_code(AuthorizationCode::new(code.to_owned()));
        if let Some(verifier) = pending.verifier() {
            request = request.set_pkce_verifier(verifier);
        }
        request.request_async(&self.http).await.map_err(token_error)
    }

    /// Verifies the ID token. A signature that no known key explains is tried once more with fresh
    /// keys: the provider may have new ones.
    async fn claims(
        &self,
        name: &str,
        config: &OidcProviderConfig,
        endpoints: &Endpoints,
        pending: &PendingSignIn,
        tokens: &CoreTokenResponse,
    ) -> Result<IdClaims, ProviderError> {
        let token = tokens
            .id_token()
            .ok_or_else(|| ProviderError::Invalid("there is no ID token".to_owned()))?;
        let now = self.clock.now();
        let check = |keys: &CoreJsonWebKeySet| {
            let nonce = pending.nonce.as_deref();
            verify(
                token,
                tokens.access_token(),
                config,
                endpoints,
                keys,
                nonce,
                now,
            )
        };
        let directory = &self.directory;
        let (known, is_fresh) = directory
            .keys(&self.http, name, config, endpoints, false)
            .await?;
        let mut verified = check(&known);
        if let (Err(ClaimsVerificationError::SignatureVerification(_)), false) =
            (&verified, is_fresh)
        {
            let fresh = directory.keys(&self.http, name, config, endpoints, true);
            verified = check(&fresh.await?.0);
        }
        verified.map_err(|error| ProviderError::Invalid(reason(&error)))
    }

    /// Reads the userinfo, if there is an endpoint. A failure is logged: the ID token has the
    /// person already.
    async fn userinfo(
        &self,
        name: &str,
        config: &OidcProviderConfig,
        endpoints: &Endpoints,
        claims: &IdClaims,
        tokens: &CoreTokenResponse,
    ) -> Result<Option<CoreUserInfoClaims>, ProviderError> {
        let Some(endpoint) = endpoints.userinfo.clone() else {
            return Ok(None);
        };
        let client = client(config, endpoints).set_user_info_url(endpoint);
        let subject = SubjectIdentifier::new(claims.subject.clone());
        let request = client.user_info(tokens.access_token().clone(), Some(subject));
        let Ok(answer) = timeout(USERINFO_TIMEOUT, request.request_async(&self.http)).await else {
            tracing::warn!(
                provider = name,
                "userinfo of the provider did not arrive in time"
            );
            return Ok(None);
        };
        match answer {
            Ok(stated) => Ok(Some(stated)),
            Err(UserInfoError::ClaimsVerification(ClaimsVerificationError::InvalidSubject(_))) => {
                let text = "the userinfo is about another person".to_owned();
                Err(ProviderError::Invalid(text))
            }
            Err(error) => {
                tracing::warn!(provider = name, %error, "userinfo of the provider cannot be used");
                Ok(None)
            }
        }
    }
}

/// Checks the issuer that a callback names: the callback may be one of another provider.
fn check_issuer(endpoints: &Endpoints, named: Option<&str>) -> Result<(), ProviderError> {
    let text = match named {
        Some(issuer) if issuer == endpoints.issuer.as_str() => return Ok(()),
        None if !endpoints.names_issuer => return Ok(()),
        Some(_) => "the callback names another issuer",
        None => "the callback names no issuer",
    };
    Err(ProviderError::Invalid(text.to_owned()))
}

fn client(config: &OidcProviderConfig, endpoints: &Endpoints) -> CoreClient {
    CoreClient::new(
        ClientId::new(config.client_id.clone()),
        endpoints.issuer.clone(),
        CoreJsonWebKeySet::default(),
    )
}

/// The userinfo's e-mail wins. It is verified if the userinfo says so, or if it is the one that
/// the ID token calls verified.
fn merge(claims: IdClaims, stated: Option<CoreUserInfoClaims>) -> ProviderPerson {
    let stated = stated.as_ref().and_then(|stated| {
        let email = stated.email()?.as_str();
        let is_same = claims.email.as_deref() == Some(email);
        let verified = stated
            .email_verified()
            .unwrap_or(is_same && claims.email_verified);
        Some((email.to_owned(), verified))
    });
    let (email, email_verified) = match stated {
        Some((email, verified)) => (Some(email), verified),
        None => (claims.email, claims.email_verified),
    };
    ProviderPerson {
        subject: claims.subject,
        email,
        email_verified,
    }
}

/// Returns the reason of a refused code. Bodies of answers are not repeated.
fn token_error<E, T>(error: RequestTokenError<E, T>) -> ProviderError
where
    E: std::error::Error + 'static,
    T: ErrorResponse + OAuthCode + 'static,
{
    ProviderError::Token(match error {
        RequestTokenError::ServerResponse(answer) => answer.code(),
        RequestTokenError::Request(error) => error.to_string(),
        RequestTokenError::Parse(error, _) => format!("its answer is not valid: {}", error.path()),
        RequestTokenError::Other(_) => "its answer is not a token response".to_owned(),
    })
}

/// Error code of an answer.
trait OAuthCode {
    /// Returns the code, shortened.
    fn code(&self) -> String;
}

impl OAuthCode for openidconnect::StandardErrorResponse<CoreErrorResponseType> {
    fn code(&self) -> String {
        let code: String = self.error().as_ref().chars().take(MAX_CODE).collect();
        format!("{code:?}")
    }
}

/// Returns why an ID token is not valid, with its cause.
fn reason(error: &ClaimsVerificationError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

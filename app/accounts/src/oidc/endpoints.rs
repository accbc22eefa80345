//! Endpoints and keys of identity providers, as their discovery documents state them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use harness::config::OidcProviderConfig;
use openidconnect::core::CoreJsonWebKeySet;
use openidconnect::{AuthUrl, HttpRequest, IssuerUrl, JsonWebKeySetUrl, TokenUrl, UserInfoUrl};
use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::error::ProviderError;
use super::http::ProviderHttp;

/// Time for which a discovery document and keys are used.
const MAX_AGE: Duration = Duration::from_secs(300);
/// Time for which a failure is repeated without another request.
const FAILURE_AGE: Duration = Duration::from_secs(2);
const WELL_KNOWN: &str = ".well-known/openid-configuration";

/// Endpoints of a provider.
#[derive(Debug, Clone)]
pub(super) struct Endpoints {
    /// Issuer, exactly as tokens have to name it.
    pub(super) issuer: IssuerUrl,
    pub(super) authorization: AuthUrl,
    pub(super) token: TokenUrl,
    pub(super) userinfo: Option<UserInfoUrl>,
    pub(super) keys: JsonWebKeySetUrl,
    /// `true` if callbacks name the issuer (RFC 9207).
    pub(super) names_issuer: bool,
}

/// Used fields of a discovery document.
#[derive(Debug, Deserialize)]
struct Document {
    issuer: String,
    authorization_endpoint: Option<String>,
    token_endpoint: Option<String>,
    userinfo_endpoint: Option<String>,
    jwks_uri: Option<String>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

/// Settings on which the endpoints of a provider depend.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Source {
    issuer: String,
    overrides: [Option<String>; 4],
}

impl Source {
    fn of(config: &OidcProviderConfig) -> Self {
        Self {
            issuer: config.issuer.clone(),
            overrides: [
                &config.authorization_endpoint,
                &config.token_endpoint,
                &config.userinfo_endpoint,
                &config.jwks_uri,
            ]
            .map(Clone::clone),
        }
    }
}

/// Cached documents of one provider.
#[derive(Debug, Default)]
struct Entry {
    source: Option<Source>,
    endpoints: Option<(Instant, Arc<Endpoints>)>,
    keys: Option<(Instant, Arc<CoreJsonWebKeySet>)>,
    failure: Option<(Instant, ProviderError)>,
}

/// Endpoints and keys of all providers. One request at a time asks a provider for them.
#[derive(Debug, Default)]
pub(super) struct Directory(Mutex<HashMap<String, Arc<tokio::sync::Mutex<Entry>>>>);

impl Directory {
    /// Returns the entry of a provider, emptied if its settings changed.
    async fn entry(
        &self,
        name: &str,
        config: &OidcProviderConfig,
    ) -> tokio::sync::OwnedMutexGuard<Entry> {
        let entry = self.0.lock().entry(name.to_owned()).or_default().clone();
        let mut entry = entry.lock_owned().await;
        let source = Source::of(config);
        if entry.source.as_ref() != Some(&source) {
            *entry = Entry {
                source: Some(source),
                ..Entry::default()
            };
        }
        entry
    }

    /// Returns the endpoints of a provider.
    pub(super) async fn endpoints(
        &self,
        http: &ProviderHttp,
        name: &str,
        config: &OidcProviderConfig,
    ) -> Result<Arc<Endpoints>, ProviderError> {
        let mut entry = self.entry(name, config).await;
        if let Some((since, endpoints)) = &entry.endpoints
            && since.elapsed() < MAX_AGE
        {
            return Ok(endpoints.clone());
        }
        if let Some((since, failure)) = &entry.failure
            && since.elapsed() < FAILURE_AGE
        {
            return Err(failure.clone());
        }
        match discover(http, config).await {
            Ok(endpoints) => {
                let endpoints = Arc::new(endpoints);
                entry.endpoints = Some((Instant::now(), endpoints.clone()));
                entry.failure = None;
                Ok(endpoints)
            }
            Err(failure) => {
                entry.failure = Some((Instant::now(), failure.clone()));
                Err(failure)
            }
        }
    }

    /// Returns the keys of a provider, and `true` if they were read for this call. `fresh` asks
    /// the provider in any case.
    pub(super) async fn keys(
        &self,
        http: &ProviderHttp,
        name: &str,
        config: &OidcProviderConfig,
        endpoints: &Endpoints,
        fresh: bool,
    ) -> Result<(Arc<CoreJsonWebKeySet>, bool), ProviderError> {
        let mut entry = self.entry(name, config).await;
        if let Some((since, keys)) = &entry.keys
            && !fresh
            && since.elapsed() < MAX_AGE
        {
            return Ok((keys.clone(), false));
        }
        let keys = json(http, &endpoints.keys).await;
        let keys: Arc<CoreJsonWebKeySet> = Arc::new(keys.map_err(ProviderError::Keys)?);
        entry.keys = Some((Instant::now(), keys.clone()));
        Ok((keys, true))
    }
}

/// Reads the discovery document of a provider.
async fn discover(
    http: &ProviderHttp,
    config: &OidcProviderConfig,
) -> Result<Endpoints, ProviderError> {
    let base = config.issuer.trim_end_matches('/');
    let document = json(http, &format!("{base}/{WELL_KNOWN}")).await;
    document
        .and_then(|document| endpoints(document, config))
        .map_err(ProviderError::Discovery)
}

/// Combines a document with the overrides of the configuration.
fn endpoints(document: Document, config: &OidcProviderConfig) -> Result<Endpoints, String> {
    let plain = |text: &str| text.trim_end_matches('/').to_owned();
    if plain(&document.issuer) != plain(&config.issuer) {
        return Err("it names another issuer than `issuer`".to_owned());
    }
    let one = |overridden: &Option<String>, stated: Option<String>, name: &str| {
        overridden
            .clone()
            .or(stated)
            .ok_or_else(|| format!("it has no `{name}`"))
    };
    let invalid = |name: &'static str| move |_| format!("`{name}` is not an address");
    let authorization = one(
        &config.authorization_endpoint,
        document.authorization_endpoint,
        "authorization_endpoint",
    )?;
    // A browser would run the script of another scheme.
    if !authorization.starts_with("https://") && !authorization.starts_with("http://") {
        return Err(invalid("authorization_endpoint")(()));
    }
    let token = one(
        &config.token_endpoint,
        document.token_endpoint,
        "token_endpoint",
    )?;
    let keys = one(&config.jwks_uri, document.jwks_uri, "jwks_uri")?;
    let userinfo = config
        .userinfo_endpoint
        .clone()
        .or(document.userinfo_endpoint);
    Ok(Endpoints {
        issuer: IssuerUrl::new(document.issuer).map_err(|_| invalid("issuer")(()))?,
        authorization: AuthUrl::new(authorization)
            .map_err(|_| invalid("authorization_endpoint")(()))?,
        token: TokenUrl::new(token).map_err(|_| invalid("token_endpoint")(()))?,
        userinfo: userinfo
            .map(UserInfoUrl::new)
            .transpose()
            .map_err(|_| invalid("userinfo_endpoint")(()))?,
        keys: JsonWebKeySetUrl::new(keys).map_err(|_| invalid("jwks_uri")(()))?,
        names_issuer: document.authorization_response_iss_parameter_supported,
    })
}

/// Reads a JSON document.
async fn json<T: DeserializeOwned>(http: &ProviderHttp, url: &str) -> Result<T, String> {
    let request: HttpRequest = http::Request::builder()
        .uri(url)
        .header(http::header::ACCEPT, "application/json")
        .body(Vec::new())
        .map_err(|_| "its address is not valid".to_owned())?;
    let answer = http
        .send(request)
        .await
        .map_err(|error| error.to_string())?;
    if answer.status() != http::StatusCode::OK {
        return Err(format!("status {}", answer.status().as_u16()));
    }
    serde_json::from_slice(answer.body()).map_err(|error| format!("it is not valid: {error}"))
}

//! An identity provider over HTTP whose answers a test changes: each realm has its own lie.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use deerflow_tests::local_server::LocalServer;
use harness::clock::{Clock, SystemClock};
use openidconnect::PrivateSigningKey as _;
use openidconnect::core::{CoreHmacKey, CoreJwsSigningAlgorithm, CoreRsaPrivateSigningKey};
use openidconnect::{JsonWebKeyId, PkceCodeChallenge, PkceCodeVerifier};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// Id and secret of the gateway at the provider.
pub(super) const CLIENT: &str = "deerflow";
pub(super) const SECRET: &str = "a secret of the client, & more";
/// Code that the provider issues.
pub(super) const CODE: &str = "the-code";

const OWN: &str = include_str!("keys/provider.pem");
const OTHER: &str = include_str!("keys/other.pem");

/// Changes the honest answers of a realm.
pub(super) type Lie = fn(&mut Answers);

/// Key of a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Key {
    /// The published key.
    Own,
    /// A key that the provider did not publish.
    Other,
    /// A shared secret.
    Shared(Vec<u8>),
    /// No signature.
    None,
}

/// Raw answer of an endpoint.
#[derive(Debug, Clone)]
pub(super) struct Raw {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: String,
}

/// All answers of a realm.
#[derive(Debug, Clone)]
pub(super) struct Answers {
    /// Address of the realm.
    pub(super) issuer: String,
    pub(super) discovery: Value,
    pub(super) keys: Value,
    pub(super) header: Value,
    pub(super) claims: Value,
    pub(super) algorithm: CoreJwsSigningAlgorithm,
    pub(super) key: Key,
    /// Change of the signed token.
    pub(super) forge: fn(String) -> String,
    pub(super) token: Value,
    pub(super) userinfo: Option<Value>,
    /// Answers that replace those of an endpoint: `discovery`, `keys`, `token`, `userinfo`.
    pub(super) raw: BTreeMap<&'static str, Raw>,
    /// Endpoints that do not answer for a minute.
    pub(super) hanging: Vec<&'static str>,
}

/// Authorization that the provider granted.
#[derive(Debug, Clone, Default)]
pub(super) struct Grant {
    pub(super) nonce: Option<String>,
    pub(super) challenge: Option<String>,
    pub(super) redirect_uri: String,
}

/// Request to the token endpoint.
#[derive(Debug, Clone, Default)]
pub(super) struct TokenRequest {
    pub(super) authorization: Option<String>,
    pub(super) form: BTreeMap<String, String>,
}

#[derive(Debug, Clone)]
struct Realm {
    lie: Lie,
    grant: Grant,
    requests: Vec<TokenRequest>,
    keys_read: usize,
}

/// Running provider with its realms.
#[derive(Debug)]
pub(super) struct Provider {
    server: LocalServer,
    realms: Arc<Mutex<BTreeMap<String, Realm>>>,
}

type Realms = Arc<Mutex<BTreeMap<String, Realm>>>;

impl Provider {
    /// Starts a provider with these realms.
    pub(super) async fn start(lies: impl IntoIterator<Item = (String, Lie)>) -> Self {
        let of = |(name, lie)| {
            let realm = Realm {
                lie,
                grant: Grant::default(),
                requests: Vec::new(),
                keys_read: 0,
            };
            (name, realm)
        };
        let realms: Realms = Arc::new(Mutex::new(lies.into_iter().map(of).collect()));
        let router = Router::new()
            .route("/{realm}/.well-known/openid-configuration", get(discovery))
            .route("/{realm}/keys", get(keys))
            .route("/{realm}/token", post(token).get(token))
            .route("/{realm}/userinfo", get(userinfo))
            .with_state(realms.clone());
        let server = LocalServer::start(router, 0).await.expect("provider");
        Self { server, realms }
    }

    /// Returns the issuer of a realm.
    pub(super) fn issuer(&self, realm: &str) -> String {
        format!("http://{}/{realm}", self.server.address())
    }

    /// Grants an authorization in a realm, as a person would by signing in there.
    pub(super) fn grant(&self, realm: &str, grant: Grant) {
        self.change(realm, |realm| realm.grant = grant);
    }

    /// Replaces the lie of a realm.
    pub(super) fn set_lie(&self, realm: &str, lie: Lie) {
        self.change(realm, |realm| realm.lie = lie);
    }

    /// Returns the requests to the token endpoint of a realm.
    pub(super) fn token_requests(&self, realm: &str) -> Vec<TokenRequest> {
        self.realms.lock()[realm].requests.clone()
    }

    /// Returns how often the keys of a realm were read.
    pub(super) fn keys_read(&self, realm: &str) -> usize {
        self.realms.lock()[realm].keys_read
    }

    fn change(&self, realm: &str, change: impl FnOnce(&mut Realm)) {
        change(self.realms.lock().get_mut(realm).expect("a realm"));
    }
}

/// Returns the time in seconds since 1970.
pub(super) fn now() -> i64 {
    SystemClock.now().timestamp()
}

/// Returns the published key `kid` as a JSON Web Key.
pub(super) fn public_key(kid: &str) -> Value {
    let key = rsa(OWN, kid).as_verification_key();
    serde_json::to_value(key).expect("JSON")
}

/// Returns the unpublished key as a JSON Web Key with the id of the published one.
pub(super) fn other_public_key(kid: &str) -> Value {
    let key = rsa(OTHER, kid).as_verification_key();
    serde_json::to_value(key).expect("JSON")
}

fn rsa(pem: &str, kid: &str) -> CoreRsaPrivateSigningKey {
    let kid = JsonWebKeyId::new(kid.to_owned());
    CoreRsaPrivateSigningKey::from_pem(pem, Some(kid)).expect("a key")
}

impl Answers {
    fn honest(issuer: String, grant: &Grant) -> Self {
        Self {
            discovery: json!({
                "issuer": issuer,
                "authorization_endpoint": format!("{issuer}/authorize"),
                "token_endpoint": format!("{issuer}/token"),
                "jwks_uri": format!("{issuer}/keys"),
                "response_types_supported": ["code"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"],
            }),
            keys: json!({ "keys": [public_key("k1")] }),
            header: json!({ "alg": "RS256", "kid": "k1", "typ": "JWT" }),
            claims: json!({
                "iss": issuer,
                "aud": CLIENT,
                "sub": "ann",
                "exp": now() + 300,
                "iat": now(),
                "nonce": grant.nonce,
                "email": "ann@example.org",
                "email_verified": true,
            }),
            algorithm: CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
            key: Key::Own,
            forge: |token| token,
            token: json!({ "access_token": "at", "token_type": "Bearer" }),
            userinfo: None,
            raw: BTreeMap::new(),
            hanging: Vec::new(),
            issuer,
        }
    }

    /// Adds a userinfo endpoint.
    pub(super) fn with_userinfo(&mut self, userinfo: Value) {
        self.discovery["userinfo_endpoint"] = format!("{}/userinfo", self.issuer).into();
        self.userinfo = Some(userinfo);
    }

    fn id_token(&self) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&self.header), part(&self.claims));
        let sign = |key: &dyn Fn(&CoreJwsSigningAlgorithm, &[u8]) -> Vec<u8>| {
            URL_SAFE_NO_PAD.encode(key(&self.algorithm, signed.as_bytes()))
        };
        let signature = match &self.key {
            Key::Own => sign(&|alg, text| rsa(OWN, "k1").sign(alg, text).expect("signed")),
            Key::Other => sign(&|alg, text| rsa(OTHER, "k1").sign(alg, text).expect("signed")),
            Key::Shared(secret) => {
                let key = CoreHmacKey::new(secret.clone());
                sign(&|alg, text| key.sign(alg, text).expect("signed"))
            }
            Key::None => String::new(),
        };
        (self.forge)(format!("{signed}.{signature}"))
    }
}

fn answers(realms: &Realms, name: &str, headers: &HeaderMap) -> Option<(Answers, Grant)> {
    let realm = realms.lock().get(name)?.clone();
    let host = headers[header::HOST].to_str().expect("text");
    let mut answers = Answers::honest(format!("http://{host}/{name}"), &realm.grant);
    (realm.lie)(&mut answers);
    Some((answers, realm.grant))
}

/// Answers for an endpoint: the raw answer if there is one, else `usual`.
async fn respond(answers: &Answers, endpoint: &str, usual: Value) -> Response {
    if answers.hanging.contains(&endpoint) {
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    let Some(raw) = answers.raw.get(endpoint) else {
        return axum::Json(usual).into_response();
    };
    let status = StatusCode::from_u16(raw.status).expect("a status");
    let mut response = (status, raw.body.clone()).into_response();
    for (name, value) in &raw.headers {
        let value = value.parse().expect("a header value");
        response.headers_mut().insert(*name, value);
    }
    response
}

async fn discovery(
    State(realms): State<Realms>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    let Some((answers, _)) = answers(&realms, &name, &headers) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let document = answers.discovery.clone();
    respond(&answers, "discovery", document).await
}

async fn keys(
    State(realms): State<Realms>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    let Some((answers, _)) = answers(&realms, &name, &headers) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    realms.lock().get_mut(&name).expect("a realm").keys_read += 1;
    let keys = answers.keys.clone();
    respond(&answers, "keys", keys).await
}

async fn userinfo(
    State(realms): State<Realms>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    let Some((answers, _)) = answers(&realms, &name, &headers) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if headers
        .get(header::AUTHORIZATION)
        .is_none_or(|value| value != "Bearer at")
    {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let userinfo = answers.userinfo.clone().unwrap_or_default();
    respond(&answers, "userinfo", userinfo).await
}

/// Redeems a code as an honest provider does: redirect URI and code verifier have to be those of
/// the authorization.
async fn token(
    State(realms): State<Realms>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let Some((answers, grant)) = answers(&realms, &name, &headers) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let mut url = reqwest::Url::parse("form://form").expect("an address");
    url.set_query(Some(&String::from_utf8_lossy(&body)));
    let form: BTreeMap<String, String> = url.query_pairs().into_owned().collect();
    let authorization = headers.get(header::AUTHORIZATION);
    let request = TokenRequest {
        authorization: authorization.map(|value| value.to_str().expect("text").to_owned()),
        form: form.clone(),
    };
    realms
        .lock()
        .get_mut(&name)
        .expect("a realm")
        .requests
        .push(request);
    let is = |key: &str, value: &str| form.get(key).is_some_and(|found| found == value);
    let proves = match (&grant.challenge, form.get("code_verifier")) {
        (None, None) => true,
        (Some(challenge), Some(verifier)) if (43..=128).contains(&verifier.len()) => {
            let verifier = PkceCodeVerifier::new(verifier.clone());
            PkceCodeChallenge::from_code_verifier_sha256(&verifier).as_str() == challenge
        }
        _ => false,
    };
    let is_valid = is("grant_type", "authorization_code")
        && is("code", CODE)
        && is("redirect_uri", &grant.redirect_uri)
        && proves;
    if !is_valid {
        let error = json!({ "error": "invalid_grant", "error_description": "no" });
        return (StatusCode::BAD_REQUEST, axum::Json(error)).into_response();
    }
    let mut tokens = answers.token.clone();
    if tokens.get("id_token").is_none() {
        tokens["id_token"] = answers.id_token().into();
    }
    respond(&answers, "token", tokens).await
}

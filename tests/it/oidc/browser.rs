//! A browser that signs in to the gateway through a provider.

use std::collections::BTreeMap;

use deerflow_tests::gateway::GatewayProcess;
use deerflow_tests::scripted_openai::ScriptedOpenAi;
use reqwest::header::{HeaderMap, LOCATION, SET_COOKIE};
use reqwest::{Method, Url};
use serde_json::{Map, Value, json};

use super::provider::{CLIENT, CODE, Grant, Lie, Provider, SECRET};
use crate::rig::{HttpResponse, config, strict_model};

/// Gateway with a provider whose realms are its identity providers.
pub(super) struct Setup {
    pub(super) gateway: GatewayProcess,
    pub(super) provider: Provider,
    client: reqwest::Client,
    _model: ScriptedOpenAi,
}

/// Sign-in that waits for its callback.
#[derive(Debug, Clone)]
pub(super) struct Begun {
    pub(super) realm: String,
    /// Query of the authorization request.
    pub(super) query: BTreeMap<String, String>,
    /// State cookie, as `name=value`.
    pub(super) cookie: String,
    /// Set-Cookie header of the state cookie.
    pub(super) set_cookie: String,
}

/// Returns the settings of a realm with changes.
fn settings(issuer: &str, changes: &Value) -> Value {
    let mut settings = json!({
        "display_name": "Corp",
        "issuer": issuer,
        "client_id": CLIENT,
        "client_secret": SECRET,
    });
    for (key, value) in changes.as_object().expect("an object") {
        settings[key] = match value.as_str() {
            Some(text) => text.replace("ISSUER", issuer).into(),
            None => value.clone(),
        };
    }
    settings
}

impl Setup {
    /// Starts a gateway with one identity provider per realm: its name, its lie, and changes of its
    /// settings, in which `ISSUER` stands for its issuer.
    pub(super) async fn start(realms: Vec<(String, Lie, Value)>) -> Self {
        let lies = realms.iter().map(|(name, lie, _)| (name.clone(), *lie));
        let provider = Provider::start(lies.collect::<Vec<_>>()).await;
        let of = |(name, _, changes): &(String, Lie, Value)| {
            (name.clone(), settings(&provider.issuer(name), changes))
        };
        let providers: Map<String, Value> = realms.iter().map(of).collect();
        let oidc = json!({ "enabled": true, "providers": providers });
        let model = strict_model().await;
        let config = config(&model.base_url, &format!("auth: {{oidc: {oidc}}}\n"));
        let gateway = GatewayProcess::start(&config, &[]).await.expect("gateway");
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(std::time::Duration::from_secs(60))
            .build()
            .expect("client");
        Self {
            gateway,
            provider,
            client,
            _model: model,
        }
    }

    /// Sends a request of the browser with this number: each has its own address.
    pub(super) async fn send(
        &self,
        browser: u8,
        method: Method,
        path: &str,
        cookie: &str,
        body: Option<Value>,
    ) -> HttpResponse {
        let base = self.gateway.base_url();
        let mut request = self
            .client
            .request(method, format!("{base}{path}"))
            .header("origin", &base)
            .header("x-real-ip", format!("10.0.0.{browser}"));
        if !cookie.is_empty() {
            request = request.header("cookie", cookie);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        HttpResponse::of(request).await
    }

    pub(super) async fn get(&self, browser: u8, path: &str, cookie: &str) -> HttpResponse {
        self.send(browser, Method::GET, path, cookie, None).await
    }

    /// Begins a sign-in; `query` is added to the address. Returns the refusal if there is one.
    pub(super) async fn begin(
        &self,
        browser: u8,
        realm: &str,
        query: &str,
    ) -> Result<Begun, HttpResponse> {
        let path = format!("/api/v1/auth/oauth/{realm}{query}");
        let answer = self.get(browser, &path, "").await;
        if answer.status != 302 {
            return Err(answer);
        }
        let url = Url::parse(location(&answer.headers)).expect("an address");
        let set_cookie = answer.headers[SET_COOKIE].to_str().expect("text");
        let cookie = set_cookie.split("; ").next().expect("a pair");
        let query: BTreeMap<String, String> = url.query_pairs().into_owned().collect();
        self.provider.grant(
            realm,
            Grant {
                nonce: query.get("nonce").cloned(),
                challenge: query.get("code_challenge").cloned(),
                redirect_uri: query["redirect_uri"].clone(),
            },
        );
        Ok(Begun {
            realm: realm.to_owned(),
            cookie: cookie.to_owned(),
            set_cookie: set_cookie.to_owned(),
            query,
        })
    }

    /// Returns to the gateway with these query parameters and cookie.
    pub(super) async fn come_back(
        &self,
        browser: u8,
        realm: &str,
        query: &[(&str, &str)],
        cookie: &str,
    ) -> HttpResponse {
        let mut url = Url::parse("form://form").expect("an address");
        url.query_pairs_mut().extend_pairs(query);
        let query = url.query().unwrap_or_default();
        let path = format!("/api/v1/auth/callback/{realm}?{query}");
        self.get(browser, &path, cookie).await
    }

    /// Returns to the gateway with the provider's code.
    pub(super) async fn complete(&self, browser: u8, begun: &Begun) -> HttpResponse {
        let query = [("code", CODE), ("state", begun.state())];
        self.come_back(browser, &begun.realm, &query, &begun.cookie)
            .await
    }

    /// Signs in at a realm.
    pub(super) async fn sign_in(&self, browser: u8, realm: &str) -> HttpResponse {
        match self.begin(browser, realm, "").await {
            Ok(begun) => self.complete(browser, &begun).await,
            Err(refused) => refused,
        }
    }

    /// Returns the person of a session.
    pub(super) async fn me(&self, session: &str) -> Value {
        self.get(1, "/api/v1/auth/me", session).await.ok()
    }
}

/// Prints the gateway's output if the test fails.
impl Drop for Setup {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the gateway printed:\n{}", self.gateway.logs());
        }
    }
}

impl Begun {
    pub(super) fn state(&self) -> &str {
        &self.query["state"]
    }
}

/// Returns the address of a redirect.
pub(super) fn location(headers: &HeaderMap) -> &str {
    headers[LOCATION].to_str().expect("text")
}

/// Returns the session cookie that a response sets, as `name=value`.
pub(super) fn session(answer: &HttpResponse) -> Option<String> {
    answer
        .headers
        .get_all(SET_COOKIE)
        .iter()
        .filter_map(|cookie| cookie.to_str().ok()?.split("; ").next())
        .find(|pair| pair.starts_with("access_token=") && pair.len() > "access_token=".len())
        .map(str::to_owned)
}

//! Browser with cookies that signs in to a gateway.

use std::collections::BTreeMap;

use deerflow_tests::gateway::GatewayProcess;
use reqwest::Method;
use serde_json::{Value, json};

use super::{HttpResponse, client};

pub(crate) const PASSWORD: &str = "a quiet brown deer";

/// Browser with cookies.
pub(crate) struct Browser {
    base_url: String,
    client: reqwest::Client,
    pub(crate) cookies: BTreeMap<String, String>,
}

impl Browser {
    pub(crate) fn new(gateway: &GatewayProcess) -> Self {
        Self {
            base_url: gateway.base_url(),
            client: client(),
            cookies: BTreeMap::new(),
        }
    }

    /// Sends a request with a JSON body as a page of the gateway does, and stores the cookies of the
    /// response.
    pub(crate) async fn send(
        &mut self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> HttpResponse {
        let request = self.request(method, path);
        let request = match body {
            Some(body) => request.json(&body),
            None => request,
        };
        self.answer(request).await
    }

    /// Builds a request as a page of the gateway does.
    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let mut request = self
            .client
            .request(method, format!("{}{path}", self.base_url))
            .header("origin", &self.base_url);
        let cookies: Vec<String> = self
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        if !cookies.is_empty() {
            request = request.header("cookie", cookies.join("; "));
        }
        if let Some(token) = self.cookies.get("csrf_token") {
            request = request.header("x-csrf-token", token);
        }
        request
    }

    /// Sends a request, and stores the cookies of the response.
    async fn answer(&mut self, request: reqwest::RequestBuilder) -> HttpResponse {
        let answer = HttpResponse::of(request).await;
        for cookie in answer.headers.get_all("set-cookie") {
            let cookie = cookie.to_str().expect("text");
            let pair = cookie.split("; ").next().expect("a pair");
            let (name, value) = pair.split_once('=').expect("a pair");
            if cookie.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        answer
    }

    pub(crate) async fn get(&mut self, path: &str) -> HttpResponse {
        self.send(Method::GET, path, None).await
    }

    pub(crate) async fn post(&mut self, path: &str, body: Value) -> HttpResponse {
        self.send(Method::POST, path, Some(body)).await
    }

    pub(crate) async fn sign_up(&mut self, route: &str, email: &str) -> HttpResponse {
        let body = json!({ "email": email, "password": PASSWORD });
        self.post(&format!("/api/v1/auth/{route}"), body).await
    }

    pub(crate) async fn login(&mut self, email: &str, password: &str) -> HttpResponse {
        let form = [("username", email), ("password", password)];
        let request = self.request(Method::POST, "/api/v1/auth/login/local");
        self.answer(request.form(&form)).await
    }

    /// Returns the id of the signed-in person.
    pub(crate) async fn id(&mut self) -> String {
        let me = self.get("/api/v1/auth/me").await.ok();
        me["id"].as_str().expect("an id").to_owned()
    }
}

//! A browser that holds cookies and repeats the CSRF token.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::http::Request;
use deerflow_gateway::guard::web_client::Peer;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::support::{Gateway, HttpResponse};

pub(crate) const PASSWORD: &str = "a quiet brown deer";

pub(crate) struct Browser<'a> {
    gateway: &'a Gateway,
    pub(crate) cookies: BTreeMap<String, String>,
    pub(crate) peer: &'static str,
    pub(crate) headers: Vec<(&'static str, String)>,
}

impl<'a> Browser<'a> {
    /// A browser on the machine of the server.
    pub(crate) fn new(gateway: &'a Gateway) -> Self {
        Self {
            gateway,
            cookies: BTreeMap::new(),
            peer: "127.0.0.1",
            headers: vec![("host", "localhost:8001".to_owned())],
        }
    }

    /// A browser on another machine.
    pub(crate) fn remote(gateway: &'a Gateway) -> Self {
        Self {
            peer: "10.0.0.9",
            headers: vec![("host", "deer.lan:8001".to_owned())],
            ..Self::new(gateway)
        }
    }

    pub(crate) async fn send(&mut self, method: &str, path: &str, body: Value) -> HttpResponse {
        let kind = ("content-type", "application/json");
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        self.raw(method, path, &[kind], body).await
    }

    pub(crate) async fn get(&mut self, path: &str) -> HttpResponse {
        self.send("GET", path, Value::Null).await
    }

    pub(crate) async fn post(&mut self, path: &str, body: Value) -> HttpResponse {
        self.send("POST", path, body).await
    }

    pub(crate) async fn raw(
        &mut self,
        method: &str,
        path: &str,
        extra: &[(&str, &str)],
        body: String,
    ) -> HttpResponse {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        for (name, value) in extra {
            request = request.header(*name, *value);
        }
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
        let peer = Peer(self.peer.parse().expect("an address"));
        let request = request.extension(peer).body(Body::from(body));
        let response = self
            .gateway
            .router
            .clone()
            .oneshot(request.expect("a request"));
        let (parts, body) = response.await.expect("an answer").into_parts();
        for cookie in parts.headers.get_all("set-cookie") {
            let cookie = cookie.to_str().expect("text");
            let (pair, attributes) = cookie.split_once("; ").expect("attributes");
            let (name, value) = pair.split_once('=').expect("a pair");
            if attributes.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        HttpResponse {
            status: parts.status,
            headers: parts.headers,
            body: axum::body::to_bytes(body, usize::MAX)
                .await
                .expect("a body"),
        }
    }

    pub(crate) async fn initialize(&mut self, email: &str) -> HttpResponse {
        let body = json!({ "email": email, "password": PASSWORD });
        self.post("/api/v1/auth/initialize", body).await
    }

    pub(crate) async fn register(&mut self, email: &str) -> HttpResponse {
        let body = json!({ "email": email, "password": PASSWORD });
        self.post("/api/v1/auth/register", body).await
    }

    pub(crate) async fn login(&mut self, email: &str, password: &str) -> HttpResponse {
        let kind = ("content-type", "application/x-www-form-urlencoded");
        let password = password.replace(' ', "+");
        let form = format!("username={email}&password={password}");
        self.raw("POST", "/api/v1/auth/login/local", &[kind], form)
            .await
    }

    pub(crate) async fn me(&mut self) -> HttpResponse {
        self.get("/api/v1/auth/me").await
    }
}

//! Sign-in over two gateways with one Postgres: concurrent requests have one outcome.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deerflow_tests::gateway::AUTH_DISABLED;
use reqwest::header::{COOKIE, ORIGIN, RETRY_AFTER, SET_COOKIE};
use reqwest::{RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::rig::{Cluster, TIMEOUT, on_postgres, text, through_redis};

const CONCURRENT: usize = 50;
const PASSWORD: &str = "a quiet brown deer";
/// Time within which an ended session is refused on every node, with the time of a request.
const ENDED_WITHIN: Duration = Duration::from_secs(2);

/// Browser of a person at one gateway.
#[derive(Debug, Clone)]
struct Device {
    client: reqwest::Client,
    url: String,
    cookies: BTreeMap<String, String>,
}

impl Device {
    fn at(cluster: &Cluster, node: usize) -> Self {
        Self {
            client: cluster.gateways.client.clone(),
            url: cluster.gateways.urls[node % cluster.gateways.urls.len()].clone(),
            cookies: BTreeMap::new(),
        }
    }

    /// Returns a device at another gateway with the same cookies.
    fn with_cookies_of(mut self, other: &Self) -> Self {
        self.cookies = other.cookies.clone();
        self
    }

    fn request(&self, path: &str) -> RequestBuilder {
        let pairs = self.cookies.iter();
        let cookies: Vec<String> = pairs
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let csrf = self.cookies.get("csrf_token").cloned();
        self.client
            .post(format!("{}{path}", self.url))
            .timeout(TIMEOUT)
            .header(ORIGIN, &self.url)
            .header(COOKIE, cookies.join("; "))
            .header("x-csrf-token", csrf.unwrap_or_default())
    }

    /// Sends a request, also again while all slots for password hashes are taken, and stores the
    /// cookies of the response.
    async fn send(&mut self, request: RequestBuilder) -> (u16, Value) {
        let started = Instant::now();
        loop {
            let request = request.try_clone().expect("a body in memory");
            let answer = request.send().await.expect("an answer");
            let status = answer.status();
            if status == StatusCode::SERVICE_UNAVAILABLE && started.elapsed() < TIMEOUT {
                assert!(answer.headers().contains_key(RETRY_AFTER));
                continue;
            }
            for cookie in answer.headers().get_all(SET_COOKIE) {
                let pair = cookie.to_str().expect("text").split(';').next();
                let (name, value) = pair.and_then(|pair| pair.split_once('=')).expect("a pair");
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
            return (status.as_u16(), answer.json().await.unwrap_or_default());
        }
    }

    async fn post(&mut self, path: &str, body: Value) -> (u16, Value) {
        let request = self.request(&format!("/api/v1/auth/{path}")).json(&body);
        self.send(request).await
    }

    async fn sign_up(&mut self, route: &str, email: &str) -> (u16, Value) {
        let body = json!({"email": email, "password": PASSWORD});
        self.post(route, body).await
    }

    async fn login(&mut self, password: &str) -> (u16, Value) {
        let form = [("username", "ann@example.org"), ("password", password)];
        let request = self.request("/api/v1/auth/login/local").form(&form);
        self.send(request).await
    }

    async fn me(&self) -> (u16, Value) {
        let request = self.client.get(format!("{}/api/v1/auth/me", self.url));
        let pairs = self.cookies.iter();
        let cookies: Vec<String> = pairs
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let answer = request.header(COOKIE, cookies.join("; ")).send().await;
        let answer = answer.expect("an answer");
        (
            answer.status().as_u16(),
            answer.json().await.unwrap_or_default(),
        )
    }
}

/// Starts two gateways that require a session.
async fn cluster() -> Cluster {
    let sections = on_postgres() + &through_redis() + "auth: {registrations_per_hour: 0}\n";
    let required = vec![(AUTH_DISABLED.0.to_owned(), "0".to_owned())];
    let secret = (
        "AUTH_JWT_SECRET".to_owned(),
        "a secret of both nodes, long enough".to_owned(),
    );
    let environment = [required, vec![secret]].concat();
    Cluster::under(&sections, &[environment.clone(), environment]).await
}

/// Returns the results of concurrent requests, one per number, at both gateways in turn.
async fn at_once<F>(cluster: &Cluster, one: impl Fn(usize, Device) -> F) -> Vec<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    let mut requests = JoinSet::new();
    for n in 0..CONCURRENT {
        requests.spawn(one(n, Device::at(cluster, n)));
    }
    requests.join_all().await
}

fn count(results: &[(u16, Value)], status: u16) -> usize {
    results.iter().filter(|result| result.0 == status).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn concurrent_sign_ups_on_two_nodes_create_one_account_each() {
    let cluster = cluster().await;
    let set_up = at_once(&cluster, async |n, mut device: Device| {
        device
            .sign_up("initialize", &format!("root{n}@example.org"))
            .await
    });
    let set_up = set_up.await;
    let counts = (count(&set_up, 201), count(&set_up, 409));
    assert_eq!(counts, (1, CONCURRENT - 1), "{set_up:?}");
    let registered = at_once(&cluster, async |n, mut device: Device| {
        let letters = "ann@example.org".chars().enumerate();
        let mixed = letters.map(|(at, letter)| match (n >> (at % 6)) & 1 {
            0 => letter.to_ascii_lowercase(),
            _ => letter.to_ascii_uppercase(),
        });
        device.sign_up("register", &mixed.collect::<String>()).await
    });
    let registered = registered.await;
    let counts = (count(&registered, 201), count(&registered, 400));
    assert_eq!(counts, (1, CONCURRENT - 1), "{registered:?}");
    for (_, refused) in registered.iter().filter(|result| result.0 == 400) {
        assert_eq!(refused["detail"]["code"], "email_already_exists");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn concurrent_logins_on_two_nodes_hold_on_both() {
    let cluster = cluster().await;
    let created = Device::at(&cluster, 0)
        .sign_up("initialize", "ann@example.org")
        .await;
    assert_eq!(created.0, 201, "{created:?}");
    let signed_in = at_once(&cluster, async |_, mut device: Device| {
        let status = device.login(PASSWORD).await.0;
        (status, device)
    });
    let signed_in = signed_in.await;
    let mut tokens = std::collections::BTreeSet::new();
    for (n, (status, device)) in signed_in.iter().enumerate() {
        assert_eq!(*status, 200);
        tokens.insert(device.cookies["access_token"].clone());
        for node in [n, n + 1] {
            let (status, me) = Device::at(&cluster, node)
                .with_cookies_of(device)
                .me()
                .await;
            assert_eq!((status, text(&me["email"])), (200, "ann@example.org"));
        }
    }
    assert_eq!(tokens.len(), CONCURRENT);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn one_of_concurrent_password_changes_ends_the_stolen_session() {
    let cluster = cluster().await;
    let mut owner = Device::at(&cluster, 0);
    let created = owner.sign_up("initialize", "ann@example.org").await;
    assert_eq!(created.0, 201, "{created:?}");
    let mut stolen = Device::at(&cluster, 1);
    assert_eq!(stolen.login(PASSWORD).await.0, 200);
    let sessions = Arc::new([owner, stolen]);
    let changed = at_once(&cluster, |n, device: Device| {
        // Each session is used at both gateways.
        let session = n / 2 % 2;
        let mut device = device.with_cookies_of(&sessions[session]);
        async move {
            let new = format!("another brown deer {n}");
            let body = json!({"current_password": PASSWORD, "new_password": new});
            let (status, answer) = device.post("change-password", body).await;
            (status, answer, session, new, device)
        }
    });
    let changed = changed.await;
    let statuses: Vec<u16> = changed.iter().map(|change| change.0).collect();
    let (winners, losers): (Vec<_>, Vec<_>) = changed.iter().partition(|change| change.0 == 200);
    assert_eq!(winners.len(), 1, "{statuses:?}");
    for loser in &losers {
        assert!(
            matches!(loser.0, 400 | 401 | 429),
            "{} {}",
            loser.0,
            loser.1
        );
    }
    let (_, _, session, password, winner) = winners[0];
    for node in [0, 1] {
        let started = Instant::now();
        let ended = Device::at(&cluster, node).with_cookies_of(&sessions[1 - session]);
        while ended.me().await.0 != 401 {
            assert!(
                started.elapsed() < ENDED_WITHIN,
                "the other session continues"
            );
        }
        let continued = Device::at(&cluster, node)
            .with_cookies_of(winner)
            .me()
            .await;
        assert_eq!(continued.0, 200, "{continued:?}");
        let mut device = Device::at(&cluster, node);
        assert_ne!(
            device.login(PASSWORD).await.0,
            200,
            "the old password is valid"
        );
        assert_eq!(
            device.login(password).await.0,
            200,
            "the new password is refused"
        );
    }
}

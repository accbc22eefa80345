//! API keys in headers, under each requirement.

use deerflow_domain::api_keys::{Rights, issue};
use secrecy::ExposeSecret;

use super::fixture::{authenticator, request};
use super::keys::REFILL_PERIOD;
use super::*;
use crate::dialect::Dialect;
use crate::guard::paths::class_of;

const PUBLIC_PATHS: [&str; 7] = [
    "/",
    "/ok",
    "/health",
    "/ready",
    "/info",
    "/api/v1/auth/setup-status",
    "/api/v1/auth/providers",
];
const PROBE_PATHS: [&str; 2] = ["/health", "/ready"];

struct TestAuth {
    authenticator: Authenticator,
    key: String,
}

async fn test_auth(rule: KeyRule) -> TestAuth {
    let (authenticator, stores) = authenticator(rule);
    let now = stores.clock.now();
    let (_, key) = issue(&*stores.keys, "ann", Rights::User, None, None, now)
        .await
        .unwrap();
    TestAuth {
        authenticator,
        key: key.expose_secret().to_owned(),
    }
}

impl TestAuth {
    /// Returns the user, or the status of the error.
    async fn ask(&self, path: &str, headers: &[(&'static str, &str)]) -> Result<String, u16> {
        self.ask_from("10.0.0.1", path, headers).await
    }

    async fn ask_from(
        &self,
        peer: &str,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<String, u16> {
        let request = request("GET", path, headers);
        let peer = Some(peer.parse().unwrap());
        let access = self.authenticator.access(class_of(path), &request, peer);
        match access.await {
            Ok(Access::Open(actor) | Access::Public(actor) | Access::Program(actor)) => {
                Ok(actor.user_id)
            }
            Ok(Access::Person(session)) => panic!("{session:?}"),
            Err(error) => Err(error.status(Dialect::Platform).as_u16()),
        }
    }
}

#[tokio::test]
async fn key_in_either_header_authenticates_its_user() {
    for rule in [KeyRule::Optional, KeyRule::Required] {
        let test_auth = test_auth(rule).await;
        let bearer = format!("bearer {}", test_auth.key);
        for headers in [
            [("x-api-key", test_auth.key.as_str())],
            [("authorization", bearer.as_str())],
        ] {
            assert_eq!(
                test_auth.ask("/threads", &headers).await,
                Ok("ann".to_owned())
            );
        }
        for wrong in [
            ("x-api-key", "x"),
            ("x-api-key", ""),
            ("authorization", "Basic abc"),
            ("authorization", &test_auth.key[1..]),
        ] {
            assert_eq!(
                test_auth.ask("/threads", &[wrong]).await,
                Err(401),
                "{wrong:?}"
            );
        }
        assert_eq!(test_auth.ask("/ok", &[("x-api-key", "x")]).await, Err(401));
        for probe in PROBE_PATHS {
            assert_eq!(
                test_auth.ask(probe, &[("x-api-key", "x")]).await,
                Ok(DEFAULT_USER_ID.to_owned()),
                "{probe}"
            );
        }
    }
}

#[tokio::test]
async fn langsmith_key_is_ignored_if_no_key_is_required() {
    let langsmith = [("x-api-key", "lsv2_pt_0123456789abcdef")];
    assert_eq!(
        test_auth(KeyRule::Optional)
            .await
            .ask("/threads", &langsmith)
            .await,
        Ok(DEFAULT_USER_ID.to_owned())
    );
    assert_eq!(
        test_auth(KeyRule::Required)
            .await
            .ask("/threads", &langsmith)
            .await,
        Err(401)
    );
}

#[tokio::test]
async fn request_without_a_key_depends_on_the_rule() {
    let default = Ok(DEFAULT_USER_ID.to_owned());
    assert_eq!(
        test_auth(KeyRule::Off)
            .await
            .ask("/threads", &[("x-api-key", "x")])
            .await,
        default
    );
    assert_eq!(
        test_auth(KeyRule::Optional)
            .await
            .ask("/threads", &[])
            .await,
        default
    );
    let required = test_auth(KeyRule::Required).await;
    for path in [
        "/threads",
        "/api/threads",
        "/metrics",
        "/nope",
        "/ok/x",
        "/api/v1/auth/me",
    ] {
        assert_eq!(required.ask(path, &[]).await, Err(401), "{path}");
    }
    for path in PUBLIC_PATHS {
        assert_eq!(required.ask(path, &[]).await, default, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn guessing_is_rate_limited_without_affecting_the_owner() {
    let test_auth = test_auth(KeyRule::Required).await;
    let mut answers = Vec::new();
    for n in 0..40 {
        answers.push(
            test_auth
                .ask("/threads", &[("x-api-key", &format!("dfk_{n:016}_x"))])
                .await
                .unwrap_err(),
        );
    }
    assert_eq!(
        (answers[0], answers[19], answers[20], answers[39]),
        (401, 401, 429, 429)
    );
    assert_eq!(
        test_auth
            .ask("/threads", &[("x-api-key", &test_auth.key)])
            .await,
        Ok("ann".to_owned())
    );
    assert_eq!(
        test_auth
            .ask_from("10.0.0.2", "/threads", &[("x-api-key", "x")])
            .await,
        Err(401)
    );

    let one_key = &test_auth.key[..test_auth.key.len() - 1];
    let mut answers = Vec::new();
    for n in 0..40 {
        answers.push(
            test_auth
                .ask_from(
                    &format!("10.1.0.{n}"),
                    "/threads",
                    &[("x-api-key", one_key)],
                )
                .await
                .unwrap_err(),
        );
    }
    assert_eq!(
        (answers[0], answers[19], answers[20], answers[39]),
        (401, 401, 429, 429)
    );
    tokio::time::advance(REFILL_PERIOD).await;
    assert_eq!(
        test_auth
            .ask_from("10.1.1.1", "/threads", &[("x-api-key", one_key)])
            .await,
        Err(401)
    );
    assert_eq!(
        test_auth
            .ask_from("10.1.1.1", "/threads", &[("x-api-key", one_key)])
            .await,
        Err(429)
    );
}

//! Keys in headers, under each of the rules.

use axum::http::{HeaderName, HeaderValue};
use deerflow_domain::api_keys::{MemoryApiKeyStore, Rights, issue};
use harness::clock::ManualClock;
use secrecy::ExposeSecret;

use super::*;
use crate::dialect::Dialect;

struct Rig {
    access: Access,
    key: String,
}

async fn rig(rule: KeyRule) -> Rig {
    let clock = ManualClock::starting_at(chrono::DateTime::UNIX_EPOCH);
    let keys: Arc<dyn ApiKeyStore> = Arc::new(MemoryApiKeyStore::default());
    let (_, key) = issue(&*keys, "ann", Rights::User, None, None, clock.now())
        .await
        .unwrap();
    Rig {
        access: Access::new(rule, keys, Arc::new(clock)),
        key: key.expose_secret().to_owned(),
    }
}

impl Rig {
    /// The user, or the status of the refusal.
    async fn ask(&self, path: &str, headers: &[(&'static str, &str)]) -> Result<String, u16> {
        self.ask_from("10.0.0.1", path, headers).await
    }

    async fn ask_from(
        &self,
        peer: &str,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<String, u16> {
        let headers: HeaderMap = headers
            .iter()
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_str(value).unwrap(),
                )
            })
            .collect();
        let actor = self
            .access
            .actor(path, &headers, Some(Peer(peer.parse().unwrap())))
            .await;
        actor
            .map(|actor| actor.user_id)
            .map_err(|error| error.status(Dialect::Platform).as_u16())
    }
}

#[tokio::test]
async fn a_key_acts_for_its_user_in_either_header() {
    for rule in [KeyRule::Optional, KeyRule::Required] {
        let rig = rig(rule).await;
        let bearer = format!("bearer {}", rig.key);
        for headers in [
            [("x-api-key", rig.key.as_str())],
            [("authorization", bearer.as_str())],
        ] {
            assert_eq!(rig.ask("/threads", &headers).await, Ok("ann".to_owned()));
        }
        for wrong in [
            ("x-api-key", "x"),
            ("x-api-key", ""),
            ("authorization", "Basic abc"),
            ("authorization", &rig.key[1..]),
        ] {
            assert_eq!(rig.ask("/threads", &[wrong]).await, Err(401), "{wrong:?}");
        }
        assert_eq!(rig.ask("/ok", &[("x-api-key", "x")]).await, Err(401));
        for probe in PROBED {
            assert_eq!(
                rig.ask(probe, &[("x-api-key", "x")]).await,
                Ok(DEFAULT_USER_ID.to_owned()),
                "{probe}"
            );
        }
    }
}

#[tokio::test]
async fn a_key_that_clients_send_unasked_is_none_where_none_is_needed() {
    let langsmith = [("x-api-key", "lsv2_pt_0123456789abcdef")];
    assert_eq!(
        rig(KeyRule::Optional)
            .await
            .ask("/threads", &langsmith)
            .await,
        Ok(DEFAULT_USER_ID.to_owned())
    );
    assert_eq!(
        rig(KeyRule::Required)
            .await
            .ask("/threads", &langsmith)
            .await,
        Err(401)
    );
}

#[tokio::test]
async fn without_a_key_the_rule_decides() {
    let default = Ok(DEFAULT_USER_ID.to_owned());
    assert_eq!(
        rig(KeyRule::Off)
            .await
            .ask("/threads", &[("x-api-key", "x")])
            .await,
        default
    );
    assert_eq!(
        rig(KeyRule::Optional).await.ask("/threads", &[]).await,
        default
    );
    let required = rig(KeyRule::Required).await;
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
    for path in OPEN {
        assert_eq!(required.ask(path, &[]).await, default, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_guesses_has_to_wait_and_the_owner_has_not() {
    let rig = rig(KeyRule::Required).await;
    let mut answers = Vec::new();
    for n in 0..40 {
        answers.push(
            rig.ask("/threads", &[("x-api-key", &format!("dfk_{n:016}_x"))])
                .await
                .unwrap_err(),
        );
    }
    assert_eq!(
        (answers[0], answers[19], answers[20], answers[39]),
        (401, 401, 429, 429)
    );
    assert_eq!(
        rig.ask("/threads", &[("x-api-key", &rig.key)]).await,
        Ok("ann".to_owned())
    );
    assert_eq!(
        rig.ask_from("10.0.0.2", "/threads", &[("x-api-key", "x")])
            .await,
        Err(401)
    );

    let one_key = &rig.key[..rig.key.len() - 1];
    let mut answers = Vec::new();
    for n in 0..40 {
        answers.push(
            rig.ask_from(
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
    tokio::time::advance(AGAIN_AFTER).await;
    assert_eq!(
        rig.ask_from("10.1.1.1", "/threads", &[("x-api-key", one_key)])
            .await,
        Err(401)
    );
    assert_eq!(
        rig.ask_from("10.1.1.1", "/threads", &[("x-api-key", one_key)])
            .await,
        Err(429)
    );
}

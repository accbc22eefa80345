//! Keys and addresses: what may be sent where.

use std::sync::Arc;

use async_trait::async_trait;
use deerflow_core::actor_context::ActorContext;
use deerflow_core::clock::SystemClock;
use deerflow_core::config::Variables;
use deerflow_core::ids::SeededIds;
use deerflow_flow::adapter::{AdapterFactory, TurnMode, TurnRuntime};
use deerflow_flow::adapters::pi_mono::{PiMonoFactory, PiMonoOptions, PiMonoPorts, SecretResolver};
use secrecy::SecretString;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::kit::{CANARY, open};
use crate::http_server::{HttpServer, Reply};
use crate::pi_mono_kit::{
    Deltas, ThisMachine, adapter_context, agent, invocation, result_json, session_context,
};

fn session(body: serde_json::Value) -> impl Fn(&crate::http_server::Recorded, usize) -> Reply {
    move |_, _| Reply::json(200, &body)
}

#[tokio::test]
async fn private_address_that_only_a_flow_names_is_refused() {
    let server = HttpServer::start(session(json!({"sessionId": "S"}))).await;
    for host in [
        "127.0.0.1",
        "public.test",
        "localhost",
        "[::ffff:127.0.0.1]",
    ] {
        let base = format!("http://{host}:{}", server.port);
        let opened = open(
            PiMonoOptions::default(),
            json!({"baseUrl": base}),
            "pi-mono",
        )
        .await;
        assert_eq!(opened, Err("PI_MONO_REQUEST_FAILED ".to_owned()), "{host}");
        let options = PiMonoOptions {
            allowed_origins: vec!["http://other.test".to_owned(), base.clone()],
            ..PiMonoOptions::default()
        };
        if !host.starts_with('[') {
            let opened = open(options, json!({"baseUrl": base}), "pi-mono").await;
            assert!(opened.is_ok(), "{host} {opened:?}");
        }
    }
}

#[tokio::test]
async fn application_key_is_sent_to_trusted_origins_only() {
    let server = HttpServer::start(session(json!({"sessionId": "S"}))).await;
    let own = format!("http://own.test:{}", server.port);
    let options = |allowed: &[&str]| PiMonoOptions {
        base_url: Some(own.clone()),
        api_key: Some(SecretString::from(CANARY)),
        allowed_origins: allowed.iter().map(|&origin| origin.to_owned()).collect(),
        ..PiMonoOptions::default()
    };
    let evil = format!("http://evil.test:{}", server.port);
    let refused = Err("adapter_config_invalid untrusted_base_url".to_owned());
    let opened = open(options(&[]), json!({"baseUrl": evil}), "pi-mono").await;
    assert_eq!(opened, refused);
    assert!(server.requests().is_empty());
    for (options, base) in [(options(&[]), &own), (options(&[&evil]), &evil)] {
        let base = format!("{base}/path/");
        let opened = open(options, json!({"baseUrl": base}), "pi-mono").await;
        assert!(opened.is_ok(), "{opened:?}");
    }
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn problems_of_configuration_are_reported_together() {
    let none = PiMonoOptions::default;
    let missing = "adapter_config_invalid missing_base_url missing_api_key missing_model";
    let opened = open(none(), json!({}), "deepseek").await;
    assert_eq!(opened, Err(missing.to_owned()));
    let config = json!({"baseUrl": "http://h", "apiKey": "k"});
    let opened = open(none(), config, "deepseek").await;
    assert_eq!(
        opened,
        Err("adapter_config_invalid missing_model".to_owned())
    );
    let opened = open(none(), json!({"baseUrl": "http://u:p@h"}), "pi-mono").await;
    assert_eq!(
        opened,
        Err("adapter_config_invalid invalid_base_url".to_owned())
    );
}

/// Secrets of one user.
#[derive(Debug)]
struct OneSecret;

#[async_trait]
impl SecretResolver for OneSecret {
    async fn resolve(&self, actor: &ActorContext, name: &str) -> Option<SecretString> {
        (actor.user_id == "u" && name == "mine").then(|| SecretString::from(CANARY))
    }
}

fn factory_with_secrets(options: PiMonoOptions) -> PiMonoFactory {
    PiMonoFactory::new(PiMonoPorts {
        options,
        variables: Variables::default(),
        secrets: Arc::new(OneSecret),
        lookup: Arc::new(ThisMachine),
        clock: Arc::new(SystemClock),
        ids: Arc::new(SeededIds::new(1)),
    })
    .unwrap()
}

#[tokio::test]
async fn named_secret_becomes_the_key() {
    let server = HttpServer::start(session(json!({"sessionId": "S"}))).await;
    let base = format!("http://own.test:{}", server.port);
    let options = PiMonoOptions {
        base_url: Some(base),
        ..PiMonoOptions::default()
    };
    let factory = factory_with_secrets(options);
    let named = agent(json!({"apiKey": {"secret": "mine"}}));
    let adapter = factory.create(adapter_context(&named)).await.unwrap();
    adapter
        .create_session(session_context(&named))
        .await
        .unwrap();
    let request = server.requests().remove(0);
    assert_eq!(
        request.headers["authorization"],
        format!("Bearer {CANARY}").as_str()
    );
    assert!(!request.body.contains("secret") && !request.body.contains(CANARY));
    let unknown = agent(json!({"apiKey": {"secret": "yours"}}));
    let error = factory.create(adapter_context(&unknown)).await.unwrap_err();
    assert_eq!(error.code, "adapter_config_invalid");
}

#[tokio::test]
async fn cancelled_turn_drops_its_request() {
    let cancel = CancellationToken::new();
    let on_request = cancel.clone();
    let server = HttpServer::start(move |_, _| {
        on_request.cancel();
        Reply::Hang
    })
    .await;
    let base = format!("http://own.test:{}", server.port);
    let options = PiMonoOptions {
        base_url: Some(base),
        ..PiMonoOptions::default()
    };
    for config in [
        json!({}),
        json!({"transport": "deepseek", "apiKey": "k", "model": "m"}),
    ] {
        let agent = agent(config);
        let factory = factory_with_secrets(options.clone());
        let adapter = factory.create(adapter_context(&agent)).await.unwrap();
        let turn = invocation(
            &agent,
            deerflow_flow::adapter::SessionId("S".to_owned()),
            TurnMode::Normal,
        );
        let deltas = Deltas::default();
        let result = adapter
            .run_turn(turn, TurnRuntime::default(), &deltas, cancel.child_token())
            .await;
        assert_eq!(
            result_json(&result)["error"]["message"],
            "the turn was cancelled"
        );
    }
}

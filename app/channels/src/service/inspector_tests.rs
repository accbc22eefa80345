//! Tests of the inspection of channels.

use deerflow_domain::channels::InMemoryChannels;
use harness::clock::{Clock, SystemClock};
use harness::config::AppConfig;
use serde_json::{Value, json};

use super::*;
use crate::service::vault::Vault;
use crate::testkit::{MemoryPlatform, MemoryPlatformFactory};

fn inspector(channels: Value) -> ChannelInspector {
    let mut config = AppConfig::default();
    config.other.insert("channels", channels);
    let context = PlatformContext {
        http: reqwest::Client::builder().build().unwrap(),
        clock: Arc::new(SystemClock),
    };
    let platform = MemoryPlatformFactory(MemoryPlatform::default());
    ChannelInspector::new(
        ChannelsConfig::of(&config),
        vec![Arc::new(platform)],
        context,
    )
}

fn key() -> CredentialKey {
    CredentialKey::parse(&"01".repeat(32)).unwrap()
}

#[tokio::test]
async fn missing_credential_is_named_and_prevents_calls() {
    let inspector = inspector(
        json!({"memory": {"enabled": true}, "wechat": {"enabled": true},
        "github": {"enabled": false}}),
    );
    let channels = inspector.channels();
    assert_eq!(channels.len(), 1);
    assert!(channels[0].enabled);
    assert_eq!(channels[0].missing, ["token"]);
    assert_eq!(
        channels[0].problem.as_deref(),
        Some("channels.memory.token: is missing")
    );
    assert_eq!(inspector.unsupported(), ["wechat"]);
    let refused = inspector.identify("memory").await;
    assert!(matches!(refused, Err(ChannelRuntimeError::Refused(_))));
    let unknown = inspector.identify("wechat").await;
    assert!(matches!(unknown, Err(ChannelRuntimeError::Unknown(_))));
}

#[tokio::test]
async fn stored_credentials_enable_the_channel() {
    let store = InMemoryChannels::stores().credentials;
    let vault = Vault::new(store.clone(), key());
    let fields = [("token".to_owned(), "t".to_owned())].into();
    vault
        .put("memory", &fields, SystemClock.now())
        .await
        .unwrap();
    let mut with_key = inspector(json!({}));
    with_key
        .read_credentials(&*store, Some(&key()))
        .await
        .unwrap();
    let channel = with_key.channels().remove(0);
    assert!(channel.enabled && channel.missing.is_empty() && channel.problem.is_none());
    assert!(with_key.identify("memory").await.is_ok());
    let mut without_key = inspector(json!({}));
    without_key.read_credentials(&*store, None).await.unwrap();
    assert_eq!(without_key.undecipherable(), ["memory"]);
    assert!(!without_key.channels()[0].enabled);
}

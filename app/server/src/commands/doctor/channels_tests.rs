//! Tests of the check of chat channels.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::super::report::Verdict;
use super::*;
use crate::commands::test_telegram::{TestTelegram, inspector};

struct Fixed(Value);

#[async_trait]
impl ChannelProbe for Fixed {
    async fn inspector(
        &self,
        _: &AppConfig,
        _: &Settings,
        _: &Environment,
    ) -> Result<ChannelInspector, String> {
        match &self.0 {
            Value::Null => Err("the key is malformed".to_owned()),
            channels => Ok(inspector(channels.clone())),
        }
    }
}

async fn findings(channels: Value, is_probed: bool) -> Vec<(Verdict, String)> {
    let mut config = AppConfig::default();
    config.other.insert("channels", channels.clone());
    let environment = Environment::of("/", None::<(String, String)>);
    let settings = Settings::from_environment(&environment).unwrap();
    let probe = Fixed(channels);
    let probe: Option<&dyn ChannelProbe> = if is_probed { Some(&probe) } else { None };
    let found = super::channels(&config, &settings, &environment, probe).await;
    for finding in &found {
        assert_eq!(finding.fix.is_empty(), finding.verdict == Verdict::Ok);
    }
    found
        .into_iter()
        .map(|finding| (finding.verdict, finding.detail))
        .collect()
}

#[tokio::test]
async fn missing_credentials_are_named_without_a_call() {
    for is_probed in [false, true] {
        let found = findings(
            json!({
                "slack": {"enabled": true, "bot_token": "xoxb-1"},
                "discord": {"enabled": false},
                "wechat": {"enabled": true},
                "buzz": {"enabled": false},
            }),
            is_probed,
        )
        .await;
        let expected = "`slack` is enabled without `app_token`".to_owned();
        assert_eq!(found, [(Verdict::Fail, expected)]);
    }
}

#[tokio::test]
async fn nothing_is_reported_without_enabled_channels() {
    assert_eq!(findings(json!({}), false).await, []);
    assert_eq!(findings(json!({}), true).await, []);
}

#[tokio::test]
async fn bot_is_reported_with_its_warnings() {
    let telegram = TestTelegram::with_bot().await;
    let entry =
        json!({"telegram": {"enabled": true, "bot_token": "1:t", "api_base": telegram.base}});
    let found = findings(entry.clone(), true).await;
    assert_eq!(found.len(), 2, "{found:?}");
    let expected = "`telegram` is @helper (account 7)".to_owned();
    assert_eq!(found[0], (Verdict::Ok, expected));
    assert_eq!(found[1].0, Verdict::Warn);
    assert!(found[1].1.contains("/setprivacy"), "{found:?}");
    let unasked = findings(entry, false).await;
    let expected = "`telegram` has its credentials".to_owned();
    assert_eq!(unasked, [(Verdict::Ok, expected)]);
}

#[tokio::test]
async fn refused_bot_fails_and_unreachable_platform_warns() {
    let entry = |base: &str| json!({"telegram": {"enabled": true, "bot_token": "1:t0ken", "api_base": base}});
    let telegram = TestTelegram::refusing().await;
    let found = findings(entry(&telegram.base), true).await;
    assert_eq!(found[0].0, Verdict::Fail, "{found:?}");
    let found_without_server = findings(entry("http://127.0.0.1:9"), true).await;
    assert_eq!(found_without_server[0].0, Verdict::Warn);
    let all = format!("{found:?}{found_without_server:?}");
    assert!(!all.contains("t0ken"), "{all}");
    let insecure = findings(entry("http://example.org"), true).await;
    assert_eq!(insecure[0].0, Verdict::Fail);
    assert!(insecure[0].1.contains("api_base"), "{insecure:?}");
}

#[tokio::test]
async fn unreadable_credentials_are_a_warning() {
    let found = findings(Value::Null, true).await;
    assert_eq!(found[0].0, Verdict::Warn);
    assert!(found[0].1.contains("the key is malformed"), "{found:?}");
}

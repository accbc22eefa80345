//! One gateway with a bot on each platform: the promises that hold for every platform.

use std::time::Duration;

use deerflow_chat_platforms::slack::SlackOptions;
use deerflow_tests::chat_fakes::{ChatFakes, PLATFORMS};
use deerflow_tests::gateway::{AUTH_DISABLED, GatewayOptions, GatewayProcess, deerflow_binary};
use serde_json::Value;

use crate::rig::until;

/// Maximum time for the answer of one platform.
const LIMIT: Duration = Duration::from_secs(25);

/// Returns the number of messages of the bot on a platform that contain a text.
fn count(fakes: &ChatFakes, platform: &str, text: &str) -> usize {
    let answers = fakes.answers(platform, 1);
    let found = answers.iter().filter(|(_, shown)| shown.contains(text));
    found.count()
}

/// Says a text on each platform and waits for the answers.
async fn ask_all(fakes: &ChatFakes, gateway: &GatewayProcess, word: &str) {
    for platform in PLATFORMS {
        let said = until(platform, async || {
            let text = format!("then say {word}.");
            fakes.say(platform, 1, &text).then_some(())
        });
        said.await;
    }
    for platform in PLATFORMS {
        let expected = format!("{word}.");
        let answered = until(platform, async || {
            (count(fakes, platform, &expected) > 0).then_some(())
        });
        if tokio::time::timeout(LIMIT, answered).await.is_err() {
            let shown = fakes.answers(platform, 1);
            panic!("{platform} shows {shown:?}\n{}", gateway.logs());
        }
    }
}

async fn get(gateway: &GatewayProcess, path: &str) -> Value {
    let answer = reqwest::get(format!("{}{path}", gateway.base_url()))
        .await
        .expect("answer");
    answer.json().await.expect("JSON")
}

async fn start(fakes: &ChatFakes) -> GatewayProcess {
    let config = format!(
        "config_version: 34
models:
  - {{name: scripted, use: scripted, model: scripted}}
runs: {{shutdown_grace_seconds: 1}}
{}",
        fakes.section("")
    );
    let mut options = GatewayOptions::new(deerflow_binary().expect("binary"), config);
    options.env = vec![(AUTH_DISABLED.0.to_owned(), AUTH_DISABLED.1.to_owned())];
    let gateway = GatewayProcess::launch(options).await.expect("gateway");
    all_running(&gateway).await;
    gateway
}

async fn all_running(gateway: &GatewayProcess) {
    let running = until("all channels", async || {
        let status = get(gateway, "/api/channels/").await;
        PLATFORMS
            .iter()
            .all(|name| status["channels"][name]["running"] == true)
            .then_some(())
    });
    running.await;
}

#[tokio::test]
async fn every_platform_is_answered_before_and_after_a_restart() {
    let fakes = ChatFakes::start().await.expect("fakes");
    let mut gateway = start(&fakes).await;
    ask_all(&fakes, &gateway, "Hello").await;
    gateway.terminate().await.expect("stopped");
    gateway.restart().await.expect("started");
    all_running(&gateway).await;
    ask_all(&fakes, &gateway, "Again").await;
    for platform in PLATFORMS {
        for text in ["Hello.", "Again."] {
            let shown = fakes.answers(platform, 1);
            assert_eq!(count(&fakes, platform, text), 1, "{platform}: {shown:?}");
        }
    }
}

#[tokio::test]
async fn secrets_of_no_platform_appear_in_logs() {
    let fakes = ChatFakes::start().await.expect("fakes");
    let gateway = start(&fakes).await;
    ask_all(&fakes, &gateway, "Hello").await;
    let logs = gateway.logs();
    let slack = SlackOptions::default();
    for secret in ["TEST-token_1", &slack.bot_token, &slack.app_token] {
        assert!(!logs.contains(secret), "{secret}\n{logs}");
    }
}

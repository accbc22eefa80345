//! Starts that cannot succeed: the process ends at once and says why.

use std::time::Duration;

use deerflow_tests::gateway::{AUTH_DISABLED, GatewayOptions, GatewayProcess, deerflow_binary};
use tokio::process::Command;

use crate::rig::{Rig, config, strict_model};

/// Why a gateway with this configuration and environment does not come up.
async fn refusal(config: &str, env: &[(&str, &str)]) -> String {
    let mut options = GatewayOptions::new(deerflow_binary().expect("binary"), config);
    options.env = [&[AUTH_DISABLED], env]
        .concat()
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    options.ready_within = Duration::from_secs(20);
    let error = GatewayProcess::launch(options)
        .await
        .expect_err("must not start");
    let told = format!("{error:#}");
    assert!(
        told.contains("before it was healthy"),
        "it ended by itself: {told}"
    );
    assert!(!told.contains("panicked"), "{told}");
    told
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let rig = Rig::start().await;
    let address = rig.gateway.address();
    let mut command = Command::new(deerflow_binary().expect("binary"));
    let home = tempfile::tempdir().expect("home");
    std::fs::write(
        home.path().join("config.yaml"),
        config(&rig.model.base_url, ""),
    )
    .expect("written");
    command
        .args(["serve", "--port", &address.port().to_string()])
        .current_dir(home.path())
        .env("DEER_FLOW_CONFIG_PATH", home.path().join("config.yaml"))
        .env("DEER_FLOW_PROJECT_ROOT", home.path())
        .env("DEER_FLOW_HOME", home.path().join(".deer-flow"))
        .envs([AUTH_DISABLED])
        .kill_on_drop(true);
    let ended = tokio::time::timeout(Duration::from_secs(20), command.output())
        .await
        .expect("in time")
        .expect("started");
    let told = [ended.stdout, ended.stderr].concat();
    let told = String::from_utf8_lossy(&told);
    assert!(
        !ended.status.success() && told.contains(&address.port().to_string()),
        "{told}"
    );
    assert!(!told.contains("panicked"), "{told}");
    rig.say("then say x").await;
}

#[tokio::test]
async fn a_second_gateway_on_the_same_data_is_refused_or_served_but_never_harmed() {
    let rig = Rig::start().await;
    let run = rig.say("then say x").await;
    let mut options = GatewayOptions::new(
        deerflow_binary().expect("binary"),
        config(&rig.model.base_url, ""),
    );
    options.env = vec![(AUTH_DISABLED.0.to_owned(), AUTH_DISABLED.1.to_owned())];
    options.home = Some(rig.gateway.home().to_owned());
    match GatewayProcess::launch(options).await {
        Ok(second) => drop(second),
        Err(error) => assert!(
            format!("{error:#}").contains("before it was healthy"),
            "{error:#}"
        ),
    }
    assert_eq!(
        rig.shown_run(&run.thread, &run.run).await["status"],
        "success"
    );
    rig.say("then say x").await;
}

#[tokio::test]
async fn a_data_folder_that_cannot_be_made_is_named() {
    let model = strict_model().await;
    let blocked = tempfile::tempdir().expect("folder");
    let file = blocked.path().join("a-file");
    std::fs::write(&file, "in the way").expect("written");
    let told = refusal(
        &config(&model.base_url, ""),
        &[("DEER_FLOW_HOME", &file.to_string_lossy())],
    )
    .await;
    assert!(told.contains("a-file"), "{told}");
}

#[tokio::test]
async fn a_database_that_cannot_be_written_is_named() {
    let model = strict_model().await;
    // Read-only for everybody, also for root.
    let told = refusal(
        &config(
            &model.base_url,
            "database: {backend: sqlite, sqlite_dir: /proc/self/fdinfo}",
        ),
        &[],
    )
    .await;
    assert!(told.contains("/proc/self/fdinfo"), "{told}");
}

#[tokio::test]
async fn a_configuration_that_is_wrong_is_named_with_its_place() {
    let told = refusal("models:\n  - {name: a, use: openai, model: m}\nsandbox: {use: local}\ntitle: {max_words: 900}\n", &[]).await;
    assert!(
        told.contains("title.max_words") && told.contains("config.yaml"),
        "{told}"
    );
    let told = refusal("models: [", &[]).await;
    assert!(told.contains("config.yaml"), "{told}");
}

#[tokio::test]
async fn an_open_door_is_refused() {
    let model = strict_model().await;
    let told = refusal(&config(&model.base_url, ""), &[("GATEWAY_HOST", "0.0.0.0")]).await;
    assert!(told.contains("0.0.0.0"), "{told}");
}

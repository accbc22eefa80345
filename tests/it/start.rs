//! Starts that cannot succeed: the process exits at once and reports why.

use std::time::Duration;

use deerflow_tests::gateway::{AUTH_DISABLED, GatewayOptions, GatewayProcess, deerflow_binary};
use tokio::process::Command;

use crate::rig::{Rig, config, strict_model};

/// Returns the reason why a gateway with this configuration and environment does not start.
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
    let actual = format!("{error:#}");
    assert!(
        actual.contains("before it was healthy"),
        "it ended by itself: {actual}"
    );
    assert!(!actual.contains("panicked"), "{actual}");
    actual
}

#[tokio::test]
async fn port_in_use_is_reported() {
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
    let actual = [ended.stdout, ended.stderr].concat();
    let actual = String::from_utf8_lossy(&actual);
    assert!(
        !ended.status.success() && actual.contains(&address.port().to_string()),
        "{actual}"
    );
    assert!(!actual.contains("panicked"), "{actual}");
    rig.run_prompt("then say x").await;
}

#[tokio::test]
async fn second_gateway_never_harms_shared_data() {
    let rig = Rig::start().await;
    let run = rig.run_prompt("then say x").await;
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
        rig.get_run(&run.thread, &run.run).await["status"],
        "success"
    );
    rig.run_prompt("then say x").await;
}

#[tokio::test]
async fn data_folder_creation_failure_is_reported() {
    let model = strict_model().await;
    let blocked = tempfile::tempdir().expect("folder");
    let file = blocked.path().join("a-file");
    std::fs::write(&file, "in the way").expect("written");
    let actual = refusal(
        &config(&model.base_url, ""),
        &[("DEER_FLOW_HOME", &file.to_string_lossy())],
    )
    .await;
    assert!(actual.contains("a-file"), "{actual}");
}

#[tokio::test]
async fn read_only_database_is_reported() {
    let model = strict_model().await;
    // Read-only for all users, including root.
    let actual = refusal(
        &config(
            &model.base_url,
            "database: {backend: sqlite, sqlite_dir: /proc/self/fdinfo}",
        ),
        &[],
    )
    .await;
    assert!(actual.contains("/proc/self/fdinfo"), "{actual}");
}

#[tokio::test]
async fn invalid_configuration_is_reported_with_its_path() {
    let actual = refusal("models:\n  - {name: a, use: openai, model: m}\nsandbox: {use: local}\ntitle: {max_words: 900}\n", &[]).await;
    assert!(
        actual.contains("title.max_words") && actual.contains("config.yaml"),
        "{actual}"
    );
    let actual = refusal("models: [", &[]).await;
    assert!(actual.contains("config.yaml"), "{actual}");
}

#[tokio::test]
async fn public_address_without_authentication_is_refused() {
    let model = strict_model().await;
    let actual = refusal(&config(&model.base_url, ""), &[("GATEWAY_HOST", "0.0.0.0")]).await;
    assert!(actual.contains("0.0.0.0"), "{actual}");
}

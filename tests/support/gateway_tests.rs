//! Handling of programs that are missing, end early or never become healthy.

use super::*;

fn options(program: &str) -> GatewayOptions {
    GatewayOptions::new(program.into(), "log_level: info\n")
}

/// Returns options that run this script in `home` as the command `serve` of a shell.
fn script(home: &Path, body: &str) -> GatewayOptions {
    std::fs::write(home.join("serve"), body).expect("script");
    GatewayOptions {
        home: Some(home.to_owned()),
        ..options("/bin/sh")
    }
}

#[tokio::test]
async fn missing_program_is_reported() {
    let error = GatewayProcess::launch(options("/nowhere/deerflow"))
        .await
        .expect_err("no such program");
    assert_eq!(error.to_string(), "running /nowhere/deerflow");
}

#[tokio::test]
async fn early_exit_is_reported_with_output() {
    let home = tempfile::tempdir().expect("home");
    let error = GatewayProcess::launch(script(home.path(), "echo bad config $0 >&2; exit 3"))
        .await
        .expect_err("it ended");
    assert_eq!(
        format!("{error:#}"),
        "the gateway printed:\nbad config serve\n: the gateway ended with exit status: 3 before it was healthy"
    );
    assert!(home.path().join("config.yaml").is_file());
}

#[tokio::test]
async fn unresponsive_program_is_killed() {
    let home = tempfile::tempdir().expect("home");
    let options = GatewayOptions {
        ready_within: Duration::from_millis(200),
        ..script(home.path(), "exec sleep 1000")
    };
    let error = GatewayProcess::launch(options)
        .await
        .expect_err("never healthy")
        .to_string();
    let pid = error
        .strip_prefix("process ")
        .and_then(|text| text.split_once(" is not healthy within 200ms"))
        .expect("pid")
        .0;
    assert!(!Path::new("/proc").join(pid).exists(), "{error}");
}

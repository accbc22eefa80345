//! Kill, stop and restart of a child process. The scripted model stands in for the gateway: it
//! answers `/health` too.

use deerflow_tests::gateway::{GatewayOptions, GatewayProcess};

use crate::rig::until;

/// Launches a process that accepts `serve` and is healthy at once.
async fn launch(home: &std::path::Path) -> GatewayProcess {
    let stand_in = format!(
        "echo started; exec '{}' --port $GATEWAY_PORT",
        env!("CARGO_BIN_EXE_scripted-openai")
    );
    std::fs::write(home.join("serve"), stand_in).expect("script");
    let options = GatewayOptions {
        home: Some(home.to_owned()),
        ..GatewayOptions::new("/bin/sh".into(), "")
    };
    GatewayProcess::launch(options).await.expect("healthy")
}

async fn healthy(gateway: &GatewayProcess) -> bool {
    reqwest::get(format!("{}/health", gateway.base_url()))
        .await
        .is_ok_and(|answer| answer.status() == 200)
}

#[tokio::test]
async fn killed_gateway_restarts_on_same_home_and_port() {
    let home = tempfile::tempdir().expect("home");
    let mut gateway = launch(home.path()).await;
    let (url, pid) = (gateway.base_url(), gateway.pid().expect("running"));
    gateway.kill9().await.expect("killed");
    assert!(!healthy(&gateway).await);
    assert_eq!(gateway.pid(), None);
    gateway.restart().await.expect("healthy again");
    assert!(healthy(&gateway).await);
    assert_eq!(gateway.base_url(), url);
    assert_ne!(gateway.pid(), Some(pid));
}

#[tokio::test]
async fn stopped_gateway_retains_output_and_status() {
    let home = tempfile::tempdir().expect("home");
    let mut gateway = launch(home.path()).await;
    until("its start message", async || {
        gateway.logs().contains("scripted model on").then_some(())
    })
    .await;
    let status = gateway.terminate().await.expect("stopped");
    assert!(!status.success());
    assert!(
        gateway
            .logs()
            .starts_with("started\nscripted model on http://127.0.0.1:"),
        "{}",
        gateway.logs()
    );
    assert!(gateway.terminate().await.is_err());
}

#[tokio::test]
async fn a_dropped_gateway_is_killed() {
    let home = tempfile::tempdir().expect("home");
    let gateway = launch(home.path()).await;
    let (url, pid) = (gateway.base_url(), gateway.pid().expect("running"));
    drop(gateway);
    // The kill is asynchronous: the connection of this request, or of the next one, breaks.
    let dead = async {
        while reqwest::get(format!("{url}/health")).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(10), dead)
        .await
        .unwrap_or_else(|_| panic!("process {pid} is still alive"));
}

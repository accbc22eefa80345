//! Tests of server processes that hang, exit, send malformed data or flood: each affects only its
//! own tools, within a time limit.

#[path = "hostile_output_tests.rs"]
mod output;
#[path = "hostile_startup_tests.rs"]
mod startup;

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::test_kit::{ScriptedServer, TestToolbox, is_alive, names, tool_context, wait_until};
use crate::ids::ThreadId;
use crate::tools::ToolSource;

const HANGING_STEP: &str = "sleep 1000";

fn good() -> Value {
    ScriptedServer::default().entry()
}

#[tokio::test]
async fn calls_of_one_thread_share_one_process() {
    let fixture = TestToolbox::with(json!({"a": good()}));
    assert_eq!(fixture.names().await, ["a_pid"]);
    let first = fixture.text("a_pid").await;
    assert_eq!(fixture.text("a_pid").await, first);
    let other = fixture
        .call_in("other", "a_pid", json!({}))
        .await
        .unwrap()
        .content
        .text();
    assert_ne!(other, first);
    let environment = std::fs::read_to_string(format!("/proc/{first}/environ")).unwrap();
    let names: Vec<&str> = environment
        .split('\0')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        names
            .iter()
            .filter(|name| !["PATH", "PWD", "TMPDIR", "TMP", "TEMP"].contains(name))
            .count(),
        0,
        "{names:?}"
    );
    fixture.toolbox.reset().await;
    wait_until("the processes ended", || {
        !is_alive(&first) && !is_alive(&other)
    })
    .await;
}

#[tokio::test]
async fn process_starts_outside_workspace_unless_configured() {
    let mut in_workspace = good();
    in_workspace["starts_in_workspace"] = true.into();
    let fixture = TestToolbox::with(json!({"own": good(), "asking": in_workspace}));
    for (tool, expected) in [
        ("own_pid", "users/ann/threads/thread/mcp/own"),
        ("asking_pid", "users/ann/threads/thread/user-data/workspace"),
    ] {
        let pid = fixture.text(tool).await;
        let cwd = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap();
        assert!(cwd.ends_with(expected), "{cwd:?}");
        let environment = std::fs::read_to_string(format!("/proc/{pid}/environ")).unwrap();
        let tmp = environment
            .split('\0')
            .find_map(|pair| pair.strip_prefix("TMPDIR="))
            .unwrap();
        assert!(
            tmp.contains("/threads/thread/mcp/") && std::fs::metadata(tmp).unwrap().is_dir(),
            "{tmp}"
        );
    }
    let own =
        std::fs::metadata(fixture.home.path().join("users/ann/threads/thread/mcp/own")).unwrap();
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&own.permissions()) & 0o777,
        0o700
    );
}

#[tokio::test]
async fn results_mask_the_working_directory() {
    let call = r#"answer "{\"content\":[{\"type\":\"text\",\"text\":\"$(pwd)/x\"}]}""#;
    let fixture = TestToolbox::with(
        json!({"a": ScriptedServer { call, ..ScriptedServer::default() }.entry()}),
    );
    assert_eq!(fixture.text("a_pid").await, "/mcp/x");
}

#[tokio::test]
async fn call_timeout_kills_the_process() {
    let base = ScriptedServer {
        first: "echo $$ >> pids",
        call: HANGING_STEP,
        ..ScriptedServer::default()
    };
    let fixture = TestToolbox::with(json!({"a": base.within("tool_call_timeout", 0.5)}));
    let file = fixture
        .home
        .path()
        .join("users/ann/threads/thread/mcp/a/pids");
    let pids = || -> Vec<String> {
        std::fs::read_to_string(&file)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect()
    };
    for calls in [1, 2] {
        let error = fixture.call("a_pid", json!({})).await.unwrap_err();
        assert_eq!(
            error,
            "Error: the MCP server a could not do this: it did not answer within 0.5 s."
        );
        assert_eq!(pids().len(), calls, "each call starts a new process");
        wait_until("the process was killed", || {
            pids().iter().all(|pid| !is_alive(pid))
        })
        .await;
    }
    assert_ne!(pids()[0], pids()[1]);
}

#[tokio::test]
async fn cancelled_call_kills_all_descendant_processes() {
    let call =
        r#"sleep 1000 & echo $! > below; setsid sleep 1000 & echo $! > apart; echo $$ > top; wait"#;
    let fixture = TestToolbox::with(
        json!({"a": ScriptedServer { call, ..ScriptedServer::default() }.entry()}),
    );
    let own = fixture.home.path().join("users/ann/threads/thread/mcp/a");
    let read = |name: &str| std::fs::read_to_string(own.join(name)).unwrap_or_default();
    {
        let call = fixture.call("a_pid", json!({}));
        tokio::pin!(call);
        tokio::select! {
            _ended = &mut call => panic!("the call returned"),
            () = wait_until("all three processes are running", || ["below", "apart", "top"].iter().all(|name| read(name).ends_with('\n'))) => {}
        }
        assert!(is_alive(&read("top")) && is_alive(&read("below")) && is_alive(&read("apart")));
    }
    wait_until("all three processes ended", || {
        ["below", "apart", "top"]
            .iter()
            .all(|name| !is_alive(&read(name)))
    })
    .await;
}

#[tokio::test]
async fn close_kills_orphaned_descendants() {
    let call = r#"sleep 1000 >&- & echo $! > below; setsid sleep 1000 >&- & echo $! > apart; answer "{\"content\":[]}""#;
    let fixture = TestToolbox::with(
        json!({"a": ScriptedServer { call, ..ScriptedServer::default() }.entry()}),
    );
    fixture.text("a_pid").await;
    let own = fixture.home.path().join("users/ann/threads/thread/mcp/a");
    let read = |name: &str| std::fs::read_to_string(own.join(name)).unwrap();
    assert!(is_alive(&read("below")) && is_alive(&read("apart")));
    fixture.toolbox.reset().await;
    wait_until("both processes ended", || {
        ["below", "apart"].iter().all(|name| !is_alive(&read(name)))
    })
    .await;
}

#[tokio::test]
async fn end_thread_closes_only_its_sessions() {
    let fixture = TestToolbox::with(json!({"a": good()}));
    let closed_pid = fixture.text("a_pid").await;
    let other = fixture
        .call_in("other", "a_pid", json!({}))
        .await
        .unwrap()
        .content
        .text();
    fixture
        .toolbox
        .end_thread("ann", &ThreadId::parse("thread").unwrap())
        .await;
    wait_until("its process ended", || !is_alive(&closed_pid)).await;
    assert!(is_alive(&other));
}

#[tokio::test]
async fn removed_server_is_not_restarted_by_running_run() {
    let fixture = TestToolbox::with(json!({"a": good()}));
    let tool = fixture.toolbox.tools().await.tools()[0].clone();
    let pid = fixture.text("a_pid").await;
    fixture.configure(json!({}));
    assert_eq!(fixture.names().await, Vec::<String>::new());
    let error = tool
        .call(Default::default(), &tool_context("thread"))
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("not configured any more"),
        "{error}"
    );
    wait_until("its process ended", || !is_alive(&pid)).await;
}

#[tokio::test]
async fn refresh_retries_failed_server_and_keeps_sessions() {
    let dir = tempfile::tempdir().unwrap();
    let mut failing = ScriptedServer {
        first: r#"[ -f "$AT" ] || exit 1"#,
        ..ScriptedServer::default()
    }
    .entry();
    failing["env"] = json!({"AT": dir.path().join("at")});
    let fixture = TestToolbox::with(json!({"a": good(), "b": failing}));
    assert_eq!(fixture.names().await, ["a_pid"]);
    let pid = fixture.text("a_pid").await;
    std::fs::write(dir.path().join("at"), "").unwrap();
    assert_eq!(
        fixture.names().await,
        ["a_pid"],
        "the retry delay has not passed"
    );
    fixture.toolbox.refresh().await;
    assert_eq!(fixture.names().await, ["a_pid", "b_pid"]);
    assert_eq!(fixture.text("a_pid").await, pid);
}

#[tokio::test]
async fn shutdown_limits_closing_of_discovery_session() {
    let list = r#"echo $$ > at; answer '{"tools":[{"name":"pid","inputSchema":{}}]}'; sleep 1000"#;
    let fixture = TestToolbox::with(
        json!({"a": ScriptedServer { list, ..ScriptedServer::default() }.entry()}),
    );
    assert_eq!(fixture.names().await, ["a_pid"]);
    let pid = std::fs::read_to_string(fixture.home.path().join("mcp/a/at")).unwrap();
    assert!(is_alive(&pid), "the session is still closing");
    tokio::time::pause();
    let began = Instant::now();
    fixture.tasks.shut_down().await;
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "shutdown does not wait for the session to close: {:?}",
        began.elapsed()
    );
    tokio::time::resume();
    wait_until("its process ended", || !is_alive(&pid)).await;
}

#[tokio::test]
async fn config_change_updates_tools_and_keeps_other_servers() {
    let fixture = TestToolbox::with(json!({"a": good(), "b": good()}));
    let before = fixture.toolbox.tools().await;
    assert!(
        std::sync::Arc::ptr_eq(&before, &fixture.toolbox.tools().await),
        "nothing has changed"
    );
    let pid = fixture.text("a_pid").await;
    let closed_pid = fixture.text("b_pid").await;
    let mut plain = ScriptedServer::default().entry();
    plain["tool_name_prefix"] = false.into();
    fixture.configure(json!({"a": good(), "c": plain}));
    let after = fixture.toolbox.tools().await;
    assert_eq!(names(&after), ["a_pid", "pid"]);
    assert!(after.version() > before.version());
    assert_eq!(fixture.text("a_pid").await, pid, "its session stays open");
    wait_until("the process of the removed server ended", || {
        !is_alive(&closed_pid)
    })
    .await;
    fixture.configure(json!({}));
    assert_eq!(fixture.names().await, Vec::<String>::new());
    wait_until("all processes ended", || !is_alive(&pid)).await;
}

#[tokio::test]
async fn shutdown_does_not_wait_for_servers() {
    let stuck = ScriptedServer {
        first: HANGING_STEP,
        ..ScriptedServer::default()
    }
    .within("session_init_timeout", 1000.0);
    let fixture = TestToolbox::with(json!({"a": good(), "stuck": stuck}));
    let listing = timeout(Duration::from_millis(200), fixture.toolbox.tools()).await;
    assert!(listing.is_err(), "discovery of the stuck server is running");
    timeout(Duration::from_secs(60), fixture.tasks.shut_down())
        .await
        .unwrap();
}

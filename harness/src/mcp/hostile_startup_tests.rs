//! Tests of servers that fail or hang during their startup.

use super::*;

#[tokio::test]
async fn concurrent_calls_share_a_failed_start() {
    let first = r#"if [ -f "$AT" ]; then echo x >> "$AT.starts"; exit 1; fi; : > "$AT""#;
    let mut entry = ScriptedServer {
        first,
        ..ScriptedServer::default()
    }
    .entry();
    let dir = tempfile::tempdir().unwrap();
    entry["env"] = json!({"AT": dir.path().join("at")});
    let fixture = TestToolbox::with(json!({"a": entry}));
    assert_eq!(fixture.names().await, ["a_pid"]);
    let answers = join_all((0..5).map(|_| fixture.call("a_pid", json!({})))).await;
    let errors: Vec<String> = answers.into_iter().map(Result::unwrap_err).collect();
    assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
    assert_eq!(
        std::fs::read_to_string(dir.path().join("at.starts")).unwrap(),
        "x\n"
    );
}

#[tokio::test]
async fn concurrent_calls_share_one_startup_timeout() {
    // Discovery runs outside of thread folders, so only calls reach the `sleep`.
    let first = r#"case "$(pwd)" in */threads/*) sleep 1000 ;; esac"#;
    let fixture = TestToolbox::with(
        json!({"a": ScriptedServer { first, ..ScriptedServer::default() }.entry()}),
    );
    assert_eq!(fixture.names().await, ["a_pid"]);
    tokio::time::pause();
    let began = Instant::now();
    let answers = join_all((0..5).map(|_| fixture.call("a_pid", json!({})))).await;
    assert!(
        answers.iter().all(|answer| answer
            .as_ref()
            .unwrap_err()
            .contains("did not start and complete the handshake within 60 s")),
        "{answers:?}"
    );
    assert!(
        began.elapsed() < Duration::from_secs(61),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn hanging_server_delays_tools_at_most_10_seconds() {
    let fixture = TestToolbox::with(
        json!({"stuck": ScriptedServer { first: HANGING_STEP, ..ScriptedServer::default() }.within("session_init_timeout", 1000.0)}),
    );
    let began = Instant::now();
    assert_eq!(fixture.names().await, Vec::<String>::new());
    assert!(
        began.elapsed() < Duration::from_secs(11),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn startup_failure_disables_only_own_tools() {
    let base = ScriptedServer::default();
    let fixture = TestToolbox::with(json!({
        "absent": {"command": "/does/not/exist"},
        "mute": ScriptedServer { greet: ":", ..base }.within("session_init_timeout", 0.3),
        "stuck": ScriptedServer { first: HANGING_STEP, ..base }.within("session_init_timeout", 0.3),
        "gone": ScriptedServer { greet: "exit 3", ..base }.entry(),
        "rude": ScriptedServer { greet: r#"printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-1,"message":"no"}}\n' "$id""#, ..base }.entry(),
        "babble": ScriptedServer { greet: "yes '{ nonsense'", ..base }.within("session_init_timeout", 0.5),
        "others": ScriptedServer { greet: r#"id=4711; answer '{}'"#, ..base }.within("session_init_timeout", 0.3),
        "listless": ScriptedServer { list: HANGING_STEP, ..base }.within("session_init_timeout", 0.5),
        "cut": ScriptedServer { list: "exit 0", ..base }.entry(),
        "endless": ScriptedServer { list: r#"answer '{"tools":[],"nextCursor":"more"}'"#, ..base }.within("session_init_timeout", 5.0),
        "broken": {"type": "http"},
        "good": good(),
    }));
    let began = Instant::now();
    assert_eq!(fixture.names().await, ["good_pid"]);
    assert!(began.elapsed() < Duration::from_secs(100));
    wait_until("discovery finished", || fixture.tasks.alive() == 0).await;
    assert_eq!(
        fixture
            .names()
            .now_or_never()
            .expect("a failed server must not delay the tool list"),
        ["good_pid"]
    );
}

//! Agents that hang, send invalid data, flood and exit: each fails only its own call, and no
//! process that it started remains.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::support::{Bench, agent, agent_with, is_alive};
use crate::rig::until;

fn within(seconds: u32, mut entry: Value) -> Value {
    entry["timeout_seconds"] = seconds.into();
    entry
}

/// Returns an entry with a timeout for failures after the agent was started, initialized and given
/// a session.
fn with_work_timeout(entry: Value) -> Value {
    within(20, entry)
}

#[tokio::test]
async fn every_phase_has_a_timeout() {
    let bench = Bench::new();
    let (greet, open, work) = tokio::join!(
        bench.ask(within(5, agent(&["initialize=hang"])), "x"),
        bench.ask(with_work_timeout(agent(&["session/new=hang"])), "x"),
        bench.ask(
            with_work_timeout(agent(&[])),
            "complain my disk is full\nsay I began\nhang"
        ),
    );
    assert!(
        greet
            .expect_err("late")
            .contains("did not start and complete its handshake within 5 s and was ended")
    );
    assert!(
        open.expect_err("late")
            .contains("did not open a session within 20 s and was ended")
    );
    let work = work.expect_err("late");
    assert!(
        work.contains("did not finish its task within 20 s and was ended"),
        "{work}"
    );
    assert!(
        work.contains("Standard error of its program:\nmy disk is full")
            && work.contains("answer until then:\nI began"),
        "{work}"
    );
}

#[tokio::test]
async fn agent_that_does_not_read_blocks_nothing() {
    let bench = Bench::new();
    let started = Instant::now();
    // More than the buffer of a pipe, so that the write blocks.
    let long = "x".repeat(1 << 20);
    let (deaf, no_agent) = tokio::join!(
        bench.ask(with_work_timeout(agent(&["after session/new=hang"])), &long),
        bench.ask(
            within(5, agent_with(json!({"command": "sleep", "args": ["1000"]}))),
            &long
        ),
    );
    assert!(
        deaf.expect_err("late")
            .contains("did not finish its task within 20 s")
    );
    assert!(
        no_agent
            .expect_err("late")
            .contains("did not start and complete its handshake within 5 s")
    );
    assert!(
        started.elapsed() < Duration::from_secs(300),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test]
async fn invalid_message_ends_the_call() {
    let bench = Bench::new();
    let entry = agent_with(json!({"env": {"KEY": "canary-key"}}));
    let (garbage, huge) = tokio::join!(
        bench.ask(entry, "garbage canary-key"),
        bench.ask(agent(&["session/prompt=huge"]), "x")
    );
    let garbage = garbage.expect_err("broken");
    assert!(
        garbage.contains("not a protocol message (\"npm notice ***\"), and was ended"),
        "{garbage}"
    );
    assert!(
        huge.expect_err("broken")
            .contains("a message of more than 8 MiB")
    );
}

#[tokio::test]
async fn agent_exit_is_reported_with_stderr_and_no_secret() {
    let bench = Bench::new();
    let entry = agent_with(json!({"env": {"KEY": "canary-key"}}));
    let died = bench
        .ask(entry, "say half\ncomplain key canary-key is wrong\ndie 7")
        .await
        .expect_err("died");
    assert!(
        died.contains("it ended with exit code 7 before its task was complete"),
        "{died}"
    );
    assert!(
        died.contains("Standard error of its program:\nkey *** is wrong")
            && died.contains("answer until then:\nhalf")
            && !died.contains("canary"),
        "{died}"
    );
    let early = bench
        .ask(agent(&["initialize=die 3"]), "x")
        .await
        .expect_err("died");
    assert!(early.contains("it ended with exit code 3"), "{early}");
    let no_agent = bench
        .ask(agent_with(json!({"command": "false"})), "x")
        .await
        .expect_err("no agent");
    assert!(no_agent.contains("it ended with exit code 1"), "{no_agent}");
}

#[tokio::test]
async fn agent_child_processes_end_with_the_call() {
    let bench = Bench::new();
    bench
        .ask(agent(&[]), "spawn by-itself")
        .await
        .expect("done");
    bench
        .ask(with_work_timeout(agent(&[])), "spawn late\nhang")
        .await
        .expect_err("late");
    bench
        .ask(agent(&[]), "spawn broken\ngarbage")
        .await
        .expect_err("broken");
    let pids = |name: &str| std::fs::read_to_string(bench.workspace("ann").join(name)).ok();
    let cancelled = bench.ask(agent(&[]), "spawn cancelled\nhang");
    let begun = until("the agent's child", async || {
        pids("cancelled").filter(|pids| pids.split(' ').all(is_alive))
    });
    tokio::select! {
        actual = cancelled => panic!("{actual:?}"),
        _pids = begun => {}
    }
    for name in ["by-itself", "late", "broken", "cancelled"] {
        let pids = pids(name).expect("two processes");
        until(name, async || {
            (!pids.split(' ').any(is_alive)).then_some(())
        })
        .await;
    }
}

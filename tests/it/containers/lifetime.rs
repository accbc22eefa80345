//! Containers that are reused, limited, removed when idle, and shared by the commands of a thread.

use super::*;

#[tokio::test]
async fn container_survives_process_crash_and_is_recreated_if_needed() {
    let engine = engine(Behavior::Good);
    let (mut place, died, tasks) = (TestHome::of(&engine), Tasks::new(), Tasks::new());
    place
        .run(&place.sandbox(&died), "t1", "true")
        .await
        .expect("a run");
    let again = place.sandbox(&tasks);
    place.run(&again, "t1", "true").await.expect("a run");
    assert_eq!(
        engine.state.count("create"),
        1,
        "the existing container is reused"
    );

    engine.state.kill(&engine.state.names()[0]);
    place
        .run(&again, "t1", "true")
        .await
        .expect("a run in a new container");
    assert_eq!(engine.state.count("create"), 2);

    place.options.image = "example/sandbox:2".to_owned();
    place
        .run(&place.sandbox(&Tasks::new()), "t1", "true")
        .await
        .expect("a run");
    let name = &engine.state.names()[0];
    assert_eq!(
        engine.state.order(name).expect("creation request")["Image"],
        "example/sandbox:2"
    );

    engine.state.kill(name);
    engine.state.occupy(name);
    let error = place
        .run(&place.sandbox(&Tasks::new()), "t1", "true")
        .await
        .expect_err("taken");
    assert!(
        error
            .to_string()
            .contains("belongs to another conversation or program"),
        "{error}"
    );
    assert_eq!(engine.state.names().len(), 1, "a foreign container stays");
}

#[tokio::test]
async fn container_limit_is_enforced_and_idle_ones_are_removed() {
    let engine = engine(Behavior::Good);
    let (mut place, tasks) = (TestHome::of(&engine), Tasks::new());
    place.rules = PoolRules {
        replicas: 1,
        overflow: OverflowPolicy::Reject,
        idle_limit: Some(Duration::from_secs(1)),
        ..place.rules
    };
    let sandbox = Arc::new(place.sandbox(&tasks));
    place.run(&sandbox, "t1", "true").await.expect("a run");
    place
        .run(&sandbox, "t2", "true")
        .await
        .expect("a run that replaces the idle container");
    assert_eq!(
        (engine.state.names().len(), engine.state.count("create")),
        (1, 2)
    );

    let started = place.dirs("t2").host_path(Root::Workspace).join("started");
    let busy = place.run(&sandbox, "t2", "touch started; sleep 1000");
    let refused = async {
        until("the command", async || started.exists().then_some(())).await;
        place
            .run(&sandbox, "t3", "true")
            .await
            .expect_err("all are in use")
    };
    let error = tokio::select! {
        ended = busy => panic!("the command must continue: {ended:?}"),
        error = refused => error,
    };
    assert!(
        error.to_string().contains("all 1 containers are in use"),
        "{error}"
    );
    until("removal of the idle container", async || {
        engine.state.names().is_empty().then_some(())
    })
    .await;
    place
        .run(&sandbox, "t3", "true")
        .await
        .expect("a free container slot");
}

#[tokio::test]
async fn container_being_removed_is_awaited_and_not_counted() {
    let engine = engine(Behavior::Good);
    let (mut place, tasks) = (TestHome::of(&engine), Tasks::new());
    place.rules = PoolRules {
        replicas: 1,
        overflow: OverflowPolicy::Reject,
        idle_limit: Some(Duration::from_secs(1)),
        ..place.rules
    };
    let sandbox = place.sandbox(&tasks);
    place.run(&sandbox, "t1", "true").await.expect("a run");
    engine.state.behave(Behavior::SilentAboutRemovals);
    until("the idle container's removal", async || {
        engine.state.names().is_empty().then_some(())
    })
    .await;

    let next = place.run(&sandbox, "t2", "true");
    tokio::pin!(next);
    let early = tokio::time::timeout(Duration::from_millis(100), &mut next).await;
    assert!(early.is_err(), "{early:?}");
    engine.state.behave(Behavior::Good);
    next.await.expect("a free container slot");
}

#[tokio::test]
async fn thread_commands_share_container_and_other_threads_wait() {
    let engine = engine(Behavior::Good);
    let (mut place, tasks) = (TestHome::of(&engine), Tasks::new());
    place.rules.replicas = 1;
    let sandbox = place.sandbox(&tasks);
    let command = "touch here; until [ -e go ]; do sleep 0.01; done";
    let other = async {
        let workspace = place.dirs("t1").host_path(Root::Workspace);
        until("the commands", async || {
            workspace.join("here").exists().then_some(())
        })
        .await;
        assert_eq!(
            place
                .run(&sandbox, "t1", "echo too")
                .await
                .expect("a concurrent run")
                .1,
            "too\n"
        );
        let waiting = place.run(&sandbox, "t2", "echo turn");
        tokio::pin!(waiting);
        let early = tokio::time::timeout(Duration::from_millis(100), &mut waiting).await;
        assert!(early.is_err(), "{early:?}");
        std::fs::write(workspace.join("go"), "").expect("a file");
        waiting.await.expect("the queued command").1
    };
    let (first, second, actual_text) = tokio::join!(
        place.run(&sandbox, "t1", command),
        place.run(&sandbox, "t1", command),
        other
    );
    assert_eq!(
        (
            first.expect("a run").0,
            second.expect("a run").0,
            actual_text.as_str()
        ),
        (CommandEnd::Exited(0), CommandEnd::Exited(0), "turn\n")
    );
    assert_eq!(engine.state.count("create"), 2);
}

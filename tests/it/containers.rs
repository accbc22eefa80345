//! Commands in containers: the sandbox contract over a fake engine, failures of an engine, and a
//! run through the gateway.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use deerflow_tests::fake_engine::{Behavior, FakeEngine, provisioner};
use harness::config::OverflowPolicy;
use harness::ids::ThreadId;
use harness::runtime::tasks::Tasks;
use harness::sandbox::command::container::{
    ContainerBackend, ContainerCommandSandbox, DockerOptions, PoolRules, ProvisionerOptions,
};
use harness::sandbox::safe_fs::Resolver;
use harness::sandbox::{
    CommandEnd, CommandError, CommandLimits, CommandRequest, CommandSandbox, Root, SkillMounts,
    ThreadDirs, Transcript,
};
use harness::testkit::command_sandbox;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::rig::{Rig, list, message_text, until};

/// A server's home folder and its container backend.
struct TestHome {
    home: TempDir,
    options: DockerOptions,
    rules: PoolRules,
}

impl TestHome {
    fn of(engine: &FakeEngine) -> Self {
        let home = tempfile::tempdir().expect("home");
        let options = DockerOptions {
            socket: engine.socket.clone(),
            image: "example/sandbox:1".to_owned(),
            prefix: "df".to_owned(),
            first_port: None,
            host: "127.0.0.1".to_owned(),
            home: (home.path().to_owned(), home.path().to_owned()),
            limits: CommandLimits::default(),
            environment: vec![("WORD".to_owned(), "inside".to_owned())],
        };
        Self {
            home,
            options,
            rules: rules(),
        }
    }

    fn dirs(&self, thread: &str) -> ThreadDirs {
        ThreadDirs::new(
            self.home.path().into(),
            Resolver::detect(),
            "ann",
            &ThreadId::parse(thread).expect("string id"),
        )
    }

    fn sandbox(&self, tasks: &Tasks) -> ContainerCommandSandbox {
        opened(
            ContainerBackend::Docker(self.options.clone()),
            self.rules,
            tasks,
        )
    }

    async fn run(
        &self,
        sandbox: &ContainerCommandSandbox,
        thread: &str,
        command: &str,
    ) -> Result<(CommandEnd, String), CommandError> {
        run(sandbox, &self.dirs(thread), command).await
    }
}

fn rules() -> PoolRules {
    PoolRules {
        replicas: 3,
        overflow: OverflowPolicy::Wait,
        burst: 0,
        acquire_limit: Duration::from_secs(20),
        ready_limit: Duration::from_secs(20),
        idle_limit: None,
        trust: Duration::from_secs(5),
    }
}

fn opened(maker: ContainerBackend, rules: PoolRules, tasks: &Tasks) -> ContainerCommandSandbox {
    ContainerCommandSandbox::new(
        maker,
        rules,
        CommandLimits::default(),
        Vec::new(),
        tasks.clone(),
    )
    .expect("a client")
}

async fn run(
    sandbox: &ContainerCommandSandbox,
    dirs: &ThreadDirs,
    command: &str,
) -> Result<(CommandEnd, String), CommandError> {
    let mut transcript = Transcript::keeping(4096);
    let request = CommandRequest {
        dirs,
        shelf: &SkillMounts::default(),
        command,
        time_limit: Duration::from_secs(20),
    };
    let end = sandbox.run(request, &mut transcript).await?;
    Ok((end, transcript.out()))
}

fn engine(behavior: Behavior) -> FakeEngine {
    FakeEngine::start(behavior).expect("an engine")
}

#[tokio::test]
async fn container_backend_passes_command_contract() {
    for behavior in [Behavior::Good, Behavior::Old] {
        let engine = engine(behavior);
        let (place, tasks) = (TestHome::of(&engine), Tasks::new());
        command_sandbox::satisfies_sandbox_contract(&place.sandbox(&tasks), &place.dirs("t1"))
            .await;
        assert_eq!(
            engine.state.count("create"),
            1,
            "one container for all commands of a thread"
        );
        tasks.shut_down().await;
        assert!(
            engine.state.names().is_empty(),
            "containers go with their process"
        );
    }
}

#[tokio::test]
async fn container_has_minimal_privileges() {
    let engine = engine(Behavior::Good);
    let (place, tasks) = (TestHome::of(&engine), Tasks::new());
    let sandbox = place.sandbox(&tasks);
    assert_eq!(
        place.run(&sandbox, "t1", "true").await.expect("a run").0,
        CommandEnd::Exited(0)
    );
    let order = engine
        .state
        .order(&engine.state.names()[0])
        .expect("creation request");
    let host = &order["HostConfig"];
    assert_eq!(
        (&host["Privileged"], &host["CapDrop"], &host["SecurityOpt"]),
        (
            &json!(false),
            &json!(["ALL"]),
            &json!(["no-new-privileges"])
        )
    );
    assert_eq!(host["PortBindings"]["8080/tcp"][0]["HostIp"], "127.0.0.1");
    assert!(host["Memory"].is_u64() && host["PidsLimit"].is_u64());
    assert_eq!(order["Env"], json!(["WORD=inside"]));
    let mounts: Vec<&Value> = list(&host["Mounts"])
        .iter()
        .map(|mount| &mount["Target"])
        .collect();
    assert_eq!(
        mounts,
        [
            "/mnt/user-data/workspace",
            "/mnt/user-data/uploads",
            "/mnt/user-data/outputs",
            "/mnt/acp-workspace"
        ]
    );
    let read_only: Vec<&Value> = list(&host["Mounts"])
        .iter()
        .map(|mount| &mount["ReadOnly"])
        .collect();
    assert_eq!(read_only, [false, false, false, true]);
}

#[tokio::test]
async fn failure_inside_container_ends_command_with_reason() {
    let expected = [
        (Behavior::Failing, "status 500"),
        (Behavior::Garbage, "the end of the command is missing"),
        (Behavior::Endless, "too long"),
        (Behavior::BreakingOff, "closed the connection early"),
    ];
    for (behavior, actual_text) in expected {
        let engine = engine(behavior);
        let (place, tasks) = (TestHome::of(&engine), Tasks::new());
        let lost = place
            .run(&place.sandbox(&tasks), "t1", "true")
            .await
            .expect_err("no report");
        assert!(
            matches!(lost, CommandError::Lost(_)) && lost.to_string().contains(actual_text),
            "{lost}"
        );
        engine.state.behave(Behavior::Good);
        tasks.shut_down().await;
    }
}

#[tokio::test]
async fn missing_engine_or_image_is_reported() {
    let engine = engine(Behavior::NoImage);
    let (mut place, tasks) = (TestHome::of(&engine), Tasks::new());
    assert!(
        place
            .run(&place.sandbox(&tasks), "t1", "true")
            .await
            .is_ok(),
        "the image is pulled"
    );
    assert_eq!(engine.state.count("fetch"), 1);

    engine.state.behave(Behavior::NoImageAnywhere);
    let error = place
        .run(&place.sandbox(&tasks), "t2", "true")
        .await
        .expect_err("no image");
    assert!(
        error
            .to_string()
            .contains("example/sandbox:1 is missing and cannot be pulled: manifest unknown"),
        "{error}"
    );

    engine.state.behave(Behavior::NeverReady);
    place.rules.ready_limit = Duration::from_millis(300);
    let error = place
        .run(&place.sandbox(&tasks), "t3", "true")
        .await
        .expect_err("not ready");
    assert!(
        error.to_string().contains("did not respond within"),
        "{error}"
    );
    assert_eq!(
        engine.state.names().len(),
        1,
        "a container that is not ready is removed"
    );

    place.options.socket = PathBuf::from("/nowhere/engine.sock");
    let error = place
        .run(&place.sandbox(&tasks), "t4", "true")
        .await
        .expect_err("no engine");
    assert!(
        error
            .to_string()
            .contains("/nowhere/engine.sock cannot be reached: the socket does not exist"),
        "{error}"
    );
}

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

#[tokio::test]
async fn port_in_use_is_skipped() {
    let engine = engine(Behavior::Good);
    let taken = tokio::net::TcpListener::bind(("127.0.0.1", 0))
        .await
        .expect("a port");
    let (mut place, tasks) = (TestHome::of(&engine), Tasks::new());
    place.options.first_port = Some(taken.local_addr().expect("an address").port());
    place
        .run(&place.sandbox(&tasks), "t1", "true")
        .await
        .expect("a run");
    assert!(engine.state.count("start") > 1 && engine.state.names().len() == 1);
}

#[tokio::test]
async fn provisioner_creates_pods_for_valid_key() {
    let (home, tasks) = (tempfile::tempdir().expect("home"), Tasks::new());
    let (server, state) = provisioner(Behavior::Good, "canary-key", home.path())
        .await
        .expect("a provisioner");
    let dirs = ThreadDirs::new(
        home.path().into(),
        Resolver::detect(),
        "ann",
        &ThreadId::parse("t1").expect("an id"),
    );
    let maker = |key: &str| {
        let url = format!("http://{}", server.address())
            .parse()
            .expect("an address");
        ContainerBackend::Provisioner(ProvisionerOptions {
            url,
            key: Some(key.into()),
            mounts: Vec::new(),
        })
    };
    let sandbox = opened(maker("canary-key"), rules(), &tasks);
    assert_eq!(
        run(&sandbox, &dirs, "echo $((6*7))").await.expect("a run"),
        (CommandEnd::Exited(0), "42\n".to_owned())
    );
    let order = state.order(&state.names()[0]).expect("creation request");
    assert_eq!(
        (&order["user_id"], &order["thread_id"]),
        (&json!("ann"), &json!("t1"))
    );

    state.behave(Behavior::Failing);
    let error = run(&opened(maker("canary-key"), rules(), &tasks), &dirs, "true")
        .await
        .expect_err("no cluster");
    assert!(
        error
            .to_string()
            .contains("the provisioner responded with status 500: no cluster"),
        "{error}"
    );
    assert_eq!(
        (state.names().len(), state.count("remove")),
        (1, 0),
        "a failing provisioner loses no pod"
    );

    let error = run(&opened(maker("wrong"), rules(), &tasks), &dirs, "true")
        .await
        .expect_err("no key");
    assert!(
        error.to_string().contains("status 401") && !error.to_string().contains("wrong"),
        "{error}"
    );
}

#[tokio::test]
async fn gateway_run_executes_commands_in_container() {
    let engine = engine(Behavior::Good);
    let address = format!("unix://{}", engine.socket.display());
    let section = "{use: \"deerflow.community.aio_sandbox:AioSandboxProvider\", image: \"example/sandbox:1\", container_prefix: df}";
    let mut rig = Rig::with_commands_in(section, &[("DOCKER_HOST", &address)]).await;
    let command = json!({"description": "look", "command": "pwd; echo made > outputs.txt; cat outputs.txt; exit 3"});
    let run = rig
        .run_prompt(&format!("[[tool:bash {command}]] then say done"))
        .await;
    let values = run.last_values();
    let actual_text = list(&values["messages"])
        .iter()
        .find(|message| message["type"] == "tool")
        .map(message_text)
        .expect("a result");
    assert!(
        actual_text.contains("/mnt/user-data/workspace")
            && actual_text.contains("made")
            && actual_text.contains("Exit Code: 3"),
        "{actual_text}"
    );
    assert_eq!(engine.state.names().len(), 1);
    rig.gateway.terminate().await.expect("a stop");
    assert!(
        engine.state.names().is_empty(),
        "containers go with the gateway"
    );
}

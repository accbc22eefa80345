//! Commands in containers: the port's promises over an engine that is none, what goes wrong with one, and a run through the gateway.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use deerflow_tests::fake_engine::{FakeEngine, Manner, provisioner};
use harness::config::OverflowPolicy;
use harness::ids::ThreadId;
use harness::runtime::tasks::Tasks;
use harness::sandbox::command::container::{
    ContainerCommandSandbox, ContainerMaker, DockerOptions, PoolRules, ProvisionerOptions,
};
use harness::sandbox::safe_fs::Resolver;
use harness::sandbox::{
    CommandEnd, CommandError, CommandLimits, CommandRequest, CommandSandbox, Root, Shelf,
    ThreadDirs, Transcript,
};
use harness::testkit::command_sandbox;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::rig::{Rig, list, until, words};

/// A server's home, and how it has containers made.
struct Place {
    home: TempDir,
    options: DockerOptions,
    rules: PoolRules,
}

impl Place {
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
            &ThreadId::parse(thread).expect("an id"),
        )
    }

    fn sandbox(&self, tasks: &Tasks) -> ContainerCommandSandbox {
        opened(
            ContainerMaker::Docker(self.options.clone()),
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

fn opened(maker: ContainerMaker, rules: PoolRules, tasks: &Tasks) -> ContainerCommandSandbox {
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
        shelf: &Shelf::default(),
        command,
        time_limit: Duration::from_secs(20),
    };
    let end = sandbox.run(request, &mut transcript).await?;
    Ok((end, transcript.out()))
}

fn engine(manner: Manner) -> FakeEngine {
    FakeEngine::start(manner).expect("an engine")
}

#[tokio::test]
async fn containers_keep_the_promises_of_commands() {
    for manner in [Manner::Good, Manner::Old] {
        let engine = engine(manner);
        let (place, tasks) = (Place::of(&engine), Tasks::new());
        command_sandbox::keeps_every_promise(&place.sandbox(&tasks), &place.dirs("t1")).await;
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
async fn a_container_has_no_more_rights_than_it_needs() {
    let engine = engine(Manner::Good);
    let (place, tasks) = (Place::of(&engine), Tasks::new());
    let sandbox = place.sandbox(&tasks);
    assert_eq!(
        place.run(&sandbox, "t1", "true").await.expect("a run").0,
        CommandEnd::Exited(0)
    );
    let order = engine
        .state
        .order(&engine.state.names()[0])
        .expect("an order");
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
async fn what_goes_wrong_inside_ends_the_command_and_is_named() {
    let expected = [
        (Manner::Failing, "status 500"),
        (Manner::Garbage, "does not tell how the command ended"),
        (Manner::Endless, "too long"),
        (Manner::BreakingOff, "broke the connection off"),
    ];
    for (manner, said) in expected {
        let engine = engine(manner);
        let (place, tasks) = (Place::of(&engine), Tasks::new());
        let lost = place
            .run(&place.sandbox(&tasks), "t1", "true")
            .await
            .expect_err("no report");
        assert!(
            matches!(lost, CommandError::Lost(_)) && lost.to_string().contains(said),
            "{lost}"
        );
        engine.state.behave(Manner::Good);
        tasks.shut_down().await;
    }
}

#[tokio::test]
async fn an_engine_or_an_image_that_is_not_there_is_named() {
    let engine = engine(Manner::NoImage);
    let (mut place, tasks) = (Place::of(&engine), Tasks::new());
    assert!(
        place
            .run(&place.sandbox(&tasks), "t1", "true")
            .await
            .is_ok(),
        "the image is fetched"
    );
    assert_eq!(engine.state.count("fetch"), 1);

    engine.state.behave(Manner::NoImageAnywhere);
    let error = place
        .run(&place.sandbox(&tasks), "t2", "true")
        .await
        .expect_err("no image");
    assert!(
        error
            .to_string()
            .contains("example/sandbox:1 is not there and cannot be fetched: manifest unknown"),
        "{error}"
    );

    engine.state.behave(Manner::NeverReady);
    place.rules.ready_limit = Duration::from_millis(300);
    let error = place
        .run(&place.sandbox(&tasks), "t3", "true")
        .await
        .expect_err("not ready");
    assert!(
        error.to_string().contains("did not answer within"),
        "{error}"
    );
    assert_eq!(
        engine.state.names().len(),
        1,
        "what is not ready is removed"
    );

    place.options.socket = PathBuf::from("/nowhere/engine.sock");
    let error = place
        .run(&place.sandbox(&tasks), "t4", "true")
        .await
        .expect_err("no engine");
    assert!(
        error
            .to_string()
            .contains("/nowhere/engine.sock cannot be reached: the socket is not there"),
        "{error}"
    );
}

#[tokio::test]
async fn a_container_outlives_a_process_that_died_and_is_made_anew_when_it_has_to() {
    let engine = engine(Manner::Good);
    let (mut place, died, tasks) = (Place::of(&engine), Tasks::new(), Tasks::new());
    place
        .run(&place.sandbox(&died), "t1", "true")
        .await
        .expect("a run");
    let again = place.sandbox(&tasks);
    place.run(&again, "t1", "true").await.expect("a run");
    assert_eq!(
        engine.state.count("create"),
        1,
        "the one that is there is taken"
    );

    engine.state.kill(&engine.state.names()[0]);
    place
        .run(&again, "t1", "true")
        .await
        .expect("a run in a new one");
    assert_eq!(engine.state.count("create"), 2);

    place.options.image = "example/sandbox:2".to_owned();
    place
        .run(&place.sandbox(&Tasks::new()), "t1", "true")
        .await
        .expect("a run");
    let name = &engine.state.names()[0];
    assert_eq!(
        engine.state.order(name).expect("an order")["Image"],
        "example/sandbox:2"
    );

    engine.state.kill(name);
    engine.state.squat(name);
    let error = place
        .run(&place.sandbox(&Tasks::new()), "t1", "true")
        .await
        .expect_err("taken");
    assert!(
        error.to_string().contains("not this conversation's"),
        "{error}"
    );
    assert_eq!(engine.state.names().len(), 1, "what is not ours stays");
}

#[tokio::test]
async fn there_are_no_more_containers_than_may_be_and_idle_ones_go() {
    let engine = engine(Manner::Good);
    let (mut place, tasks) = (Place::of(&engine), Tasks::new());
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
        .expect("a run in place of the idle one");
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
        ended = busy => panic!("it should go on: {ended:?}"),
        error = refused => error,
    };
    assert!(
        error.to_string().contains("all 1 containers are in use"),
        "{error}"
    );
    until("the idle container's end", async || {
        engine.state.names().is_empty().then_some(())
    })
    .await;
    place
        .run(&sandbox, "t3", "true")
        .await
        .expect("there is room again");
}

#[tokio::test]
async fn a_container_that_is_being_removed_is_waited_for_and_not_counted_as_in_use() {
    let engine = engine(Manner::Good);
    let (mut place, tasks) = (Place::of(&engine), Tasks::new());
    place.rules = PoolRules {
        replicas: 1,
        overflow: OverflowPolicy::Reject,
        idle_limit: Some(Duration::from_secs(1)),
        ..place.rules
    };
    let sandbox = place.sandbox(&tasks);
    place.run(&sandbox, "t1", "true").await.expect("a run");
    engine.state.behave(Manner::SilentAboutRemovals);
    until("the idle container's removal", async || {
        engine.state.names().is_empty().then_some(())
    })
    .await;

    let next = place.run(&sandbox, "t2", "true");
    tokio::pin!(next);
    let early = tokio::time::timeout(Duration::from_millis(100), &mut next).await;
    assert!(early.is_err(), "{early:?}");
    engine.state.behave(Manner::Good);
    next.await.expect("there is room again");
}

#[tokio::test]
async fn commands_of_a_thread_share_a_container_and_those_of_others_wait_for_their_turn() {
    let engine = engine(Manner::Good);
    let (mut place, tasks) = (Place::of(&engine), Tasks::new());
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
                .expect("a run beside")
                .1,
            "too\n"
        );
        let waiting = place.run(&sandbox, "t2", "echo turn");
        tokio::pin!(waiting);
        let early = tokio::time::timeout(Duration::from_millis(100), &mut waiting).await;
        assert!(early.is_err(), "{early:?}");
        std::fs::write(workspace.join("go"), "").expect("a file");
        waiting.await.expect("its turn").1
    };
    let (first, second, said) = tokio::join!(
        place.run(&sandbox, "t1", command),
        place.run(&sandbox, "t1", command),
        other
    );
    assert_eq!(
        (
            first.expect("a run").0,
            second.expect("a run").0,
            said.as_str()
        ),
        (CommandEnd::Exited(0), CommandEnd::Exited(0), "turn\n")
    );
    assert_eq!(engine.state.count("create"), 2);
}

#[tokio::test]
async fn a_port_that_is_taken_is_passed_over() {
    let engine = engine(Manner::Good);
    let taken = tokio::net::TcpListener::bind(("127.0.0.1", 0))
        .await
        .expect("a port");
    let (mut place, tasks) = (Place::of(&engine), Tasks::new());
    place.options.first_port = Some(taken.local_addr().expect("an address").port());
    place
        .run(&place.sandbox(&tasks), "t1", "true")
        .await
        .expect("a run");
    assert!(engine.state.count("start") > 1 && engine.state.names().len() == 1);
}

#[tokio::test]
async fn a_provisioner_makes_pods_for_whoever_has_its_key() {
    let (home, tasks) = (tempfile::tempdir().expect("home"), Tasks::new());
    let (server, state) = provisioner(Manner::Good, "canary-key", home.path())
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
        ContainerMaker::Provisioner(ProvisionerOptions {
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
    let order = state.order(&state.names()[0]).expect("an order");
    assert_eq!(
        (&order["user_id"], &order["thread_id"]),
        (&json!("ann"), &json!("t1"))
    );

    state.behave(Manner::Failing);
    let error = run(&opened(maker("canary-key"), rules(), &tasks), &dirs, "true")
        .await
        .expect_err("no cluster");
    assert!(
        error
            .to_string()
            .contains("the provisioner answered with status 500: no cluster"),
        "{error}"
    );
    assert_eq!(
        (state.names().len(), state.count("remove")),
        (1, 0),
        "a provisioner in trouble loses no pod"
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
async fn a_run_of_the_gateway_has_its_commands_in_a_container() {
    let engine = engine(Manner::Good);
    let address = format!("unix://{}", engine.socket.display());
    let section = "{use: \"deerflow.community.aio_sandbox:AioSandboxProvider\", image: \"example/sandbox:1\", container_prefix: df}";
    let mut rig = Rig::with_commands_in(section, &[("DOCKER_HOST", &address)]).await;
    let command = json!({"description": "look", "command": "pwd; echo made > outputs.txt; cat outputs.txt; exit 3"});
    let run = rig
        .say(&format!("[[tool:bash {command}]] then say done"))
        .await;
    let values = run.last_values();
    let said = list(&values["messages"])
        .iter()
        .find(|message| message["type"] == "tool")
        .map(words)
        .expect("a result");
    assert!(
        said.contains("/mnt/user-data/workspace")
            && said.contains("made")
            && said.contains("Exit Code: 3"),
        "{said}"
    );
    assert_eq!(engine.state.names().len(), 1);
    rig.gateway.terminate().await.expect("a stop");
    assert!(
        engine.state.names().is_empty(),
        "containers go with the gateway"
    );
}

//! Commands in containers: the sandbox contract over a fake engine, failures of an engine, and a
//! run through the gateway.

mod lifetime;
mod provisioner;

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

fn opened(backend: ContainerBackend, rules: PoolRules, tasks: &Tasks) -> ContainerCommandSandbox {
    ContainerCommandSandbox::new(
        backend,
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
    let mut transcript = Transcript::with_limit(4096);
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
        let (home, tasks) = (TestHome::of(&engine), Tasks::new());
        command_sandbox::satisfies_sandbox_contract(&home.sandbox(&tasks), &home.dirs("t1")).await;
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
    let (home, tasks) = (TestHome::of(&engine), Tasks::new());
    let sandbox = home.sandbox(&tasks);
    assert_eq!(
        home.run(&sandbox, "t1", "true").await.expect("a run").0,
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
        let (home, tasks) = (TestHome::of(&engine), Tasks::new());
        let lost = home
            .run(&home.sandbox(&tasks), "t1", "true")
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
async fn port_in_use_is_skipped() {
    let engine = engine(Behavior::Good);
    let occupied = tokio::net::TcpListener::bind(("127.0.0.1", 0))
        .await
        .expect("a port");
    let (mut place, tasks) = (TestHome::of(&engine), Tasks::new());
    place.options.first_port = Some(occupied.local_addr().expect("an address").port());
    place
        .run(&place.sandbox(&tasks), "t1", "true")
        .await
        .expect("a run");
    assert!(engine.state.count("start") > 1 && engine.state.names().len() == 1);
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

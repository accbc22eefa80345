//! Commands in real sandboxes.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::sandbox::safe_fs::Resolver;
use crate::sandbox::virtual_paths::RelativePath;
use crate::sandbox::{CommandLimits, Mount, MountedSkill, Transcript};
use crate::testkit::command_sandbox;
use deerflow_core::ids::ThreadId;

#[cfg(feature = "http")]
#[path = "egress_tests.rs"]
mod egress_tests;
#[path = "escapes_tests.rs"]
mod escapes;

/// A sandbox with a fresh home, next to files that no command may see.
struct Fixture {
    base: tempfile::TempDir,
    sandbox: BubblewrapCommandSandbox,
    dirs: ThreadDirs,
}

impl Fixture {
    async fn with(limits: CommandLimits) -> Self {
        let base = tempfile::tempdir().unwrap();
        let options = BubblewrapOptions {
            limits,
            inner: Some(inner_program()),
            ..BubblewrapOptions::new(base.path().join("support"))
        };
        let (sandbox, report) = BubblewrapCommandSandbox::open(options).await;
        let Some(sandbox) = sandbox else {
            panic!("the sandbox does not hold here: {}", report.missing_text())
        };
        let dirs = thread_of(base.path(), "ann");
        dirs.create(Root::Workspace).unwrap();
        Self {
            base,
            sandbox,
            dirs,
        }
    }

    async fn new() -> Self {
        Self::with(CommandLimits::default()).await
    }

    async fn run(&self, command: &str) -> (CommandEnd, String, String) {
        self.run_within(command, Duration::from_secs(20)).await
    }

    async fn run_within(
        &self,
        command: &str,
        time_limit: Duration,
    ) -> (CommandEnd, String, String) {
        let mut transcript = Transcript::with_limit(1 << 20);
        let request = CommandRequest {
            dirs: &self.dirs,
            shelf: &SkillMounts::default(),
            command,
            time_limit,
        };
        let end = self.sandbox.run(request, &mut transcript).await.unwrap();
        (end, transcript.out(), transcript.err())
    }
}

/// The sandbox example, used as its own inner program.
fn inner_program() -> InnerProgram {
    let tests = std::env::current_exe().unwrap();
    let program = tests
        .parent()
        .and_then(|deps| deps.parent())
        .unwrap()
        .join("examples/sandbox");
    assert!(
        program.exists(),
        "build it first: cargo build -p deerflow-harness --example sandbox"
    );
    InnerProgram {
        program,
        arguments: vec!["inner".to_owned()],
    }
}

fn thread_of(base: &std::path::Path, user: &str) -> ThreadDirs {
    let home: Arc<std::path::Path> = base.join("home").into();
    ThreadDirs::new(
        home,
        Resolver::detect(),
        user,
        &ThreadId::parse("t1").unwrap(),
    )
}

const SMALL_LIMITS: CommandLimits = CommandLimits {
    processes: 40,
    memory_bytes: 128 << 20,
    file_bytes: 1 << 20,
    open_files: 64,
    cpu_seconds: 1,
    scratch_bytes: 2 << 20,
    output_bytes: 4 << 20,
};

#[tokio::test]
#[ignore = "needs bubblewrap; make test-external runs it"]
async fn adapter_fulfils_port_contract() {
    let fixture = Fixture::new().await;
    command_sandbox::satisfies_sandbox_contract(&fixture.sandbox, &fixture.dirs).await;
}

#[tokio::test]
#[ignore = "needs bubblewrap; make test-external runs it"]
async fn skills_are_read_only_and_removed_ones_are_hidden() {
    let fixture = Fixture::new().await;
    let shelved = |name: &str| {
        let host = fixture.base.path().join(name);
        MountedSkill {
            path: RelativePath::parse(&format!("public/{name}")).unwrap(),
            host,
        }
    };
    for name in ["on", "off"] {
        std::fs::create_dir(fixture.base.path().join(name)).unwrap();
        std::fs::write(fixture.base.path().join(name).join("SKILL.md"), name).unwrap();
    }
    let skills = SkillMounts::new(vec![shelved("on"), shelved("gone")]);
    let command = "cd /mnt/skills; cat public/*/SKILL.md; touch new || touch public/new || touch public/on/new || rm public/on/SKILL.md || echo kept";
    let request = CommandRequest {
        dirs: &fixture.dirs,
        shelf: &skills,
        command,
        time_limit: Duration::from_secs(20),
    };
    let mut transcript = Transcript::with_limit(1 << 20);
    assert_eq!(
        fixture.sandbox.run(request, &mut transcript).await.unwrap(),
        CommandEnd::Exited(0)
    );
    assert_eq!(transcript.out(), "onkept\n");
}

#[tokio::test]
#[ignore = "needs bubblewrap; make test-external runs it"]
async fn ordinary_programs_work() {
    let fixture = Fixture::new().await;
    let (end, out, err) = fixture
        .run(
            "id -un; echo $HOME $TMPDIR; mktemp >/dev/null && ls -d /mnt/user-data/uploads; seq 3 | sort -r | head -1; \
             (echo inner) | cat; exec 5<>/dev/shm/x; test -w . && echo writable; cat /dev/null; od -An -tx1 -N1 /dev/zero",
        )
        .await;
    assert_eq!((end, err.as_str()), (CommandEnd::Exited(0), ""));
    assert_eq!(
        out,
        "agent\n/mnt/user-data/workspace /tmp\n/mnt/user-data/uploads\n3\ninner\nwritable\n 00\n"
    );
}

#[tokio::test]
#[ignore = "needs bubblewrap; make test-external runs it"]
async fn mounts_variables_and_hidden_folders_apply() {
    let fixture = Fixture::new().await;
    let data = fixture.base.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("a"), "given").unwrap();
    let options = BubblewrapOptions {
        mounts: vec![Mount {
            host: data.clone(),
            inside: "/mnt/data".to_owned(),
            read_only: true,
        }],
        environment: vec![("TOKEN".to_owned(), "t-1".to_owned())],
        hidden: vec!["/usr/share".into()],
        ..fixture.sandbox.options.clone()
    };
    let (sandbox, _) = BubblewrapCommandSandbox::open(options).await;
    let mut transcript = Transcript::with_limit(1024);
    let command = "cat /mnt/data/a; echo $TOKEN; ls /usr/share | wc -l; touch /mnt/data/b";
    let request = CommandRequest {
        dirs: &fixture.dirs,
        shelf: &SkillMounts::default(),
        command,
        time_limit: Duration::from_secs(20),
    };
    let end = sandbox
        .unwrap()
        .run(request, &mut transcript)
        .await
        .unwrap();
    assert_eq!(
        (end, transcript.out().as_str()),
        (CommandEnd::Exited(1), "givent-1\n0\n")
    );
    assert!(!data.join("b").exists());
}

#[tokio::test]
#[ignore = "needs bubblewrap; make test-external runs it"]
async fn fork_bomb_is_limited_and_killed() {
    let fixture = Fixture::with(SMALL_LIMITS).await;
    let command = "for i in $(seq 300); do sleep 30 & done 2>/dev/null; ls -d /proc/[0-9]* | wc -l";
    let (end, out, _) = fixture.run_within(command, Duration::from_secs(3)).await;
    // The shell retries failed forks for a while.
    assert!(
        end == CommandEnd::TimedOut
            || end != CommandEnd::Exited(0)
            || out.trim().parse::<u32>().unwrap() <= 50,
        "{end:?} {out}"
    );
    let (end, ..) = fixture
        .run_within(
            "bomb() { bomb | bomb & }; bomb; sleep 30",
            Duration::from_secs(2),
        )
        .await;
    assert_ne!(end, CommandEnd::Exited(0));
    let (end, out, _) = fixture.run("echo next").await;
    assert_eq!((end, out.as_str()), (CommandEnd::Exited(0), "next\n"));
}

#[tokio::test]
#[ignore = "needs bubblewrap; make test-external runs it"]
async fn memory_files_and_cpu_time_are_limited() {
    let fixture = Fixture::with(SMALL_LIMITS).await;
    // A shell that doubles a text.
    let (end, out, _) = fixture
        .run("x=xxxxxxxx; while :; do x=$x$x; done; echo ESCAPED")
        .await;
    assert_ne!(end, CommandEnd::Exited(0));
    assert!(!out.contains("ESCAPED"));
    fixture.run("head -c 50000000 /dev/zero > big").await;
    let written = std::fs::metadata(fixture.dirs.host_path(Root::Workspace).join("big"))
        .unwrap()
        .len();
    assert!(written <= SMALL_LIMITS.file_bytes, "{written}");
    let (end, ..) = fixture
        .run("for i in 1 2 3 4; do head -c 1000000 /dev/zero > /tmp/$i || exit 3; done")
        .await;
    assert_eq!(end, CommandEnd::Exited(3));
    let (end, ..) = fixture.run("while :; do :; done").await;
    assert!(matches!(end, CommandEnd::Exited(128..)), "{end:?}");
}

#[tokio::test]
#[ignore = "needs bubblewrap; make test-external runs it"]
async fn excess_output_kills_the_command() {
    let fixture = Fixture::with(SMALL_LIMITS).await;
    let mut transcript = Transcript::with_limit(1000);
    let request = CommandRequest {
        dirs: &fixture.dirs,
        shelf: &SkillMounts::default(),
        command: "yes & yes >&2",
        time_limit: Duration::from_secs(20),
    };
    assert_eq!(
        fixture.sandbox.run(request, &mut transcript).await.unwrap(),
        CommandEnd::TooMuchOutput
    );
    assert!(transcript.out().len() + transcript.err().len() < 5000);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs bubblewrap; make test-external runs it"]
async fn command_survives_the_thread_that_requested_it() {
    let fixture = Fixture::new().await;
    let runtime = tokio::runtime::Handle::current();
    let started = fixture.dirs.host_path(Root::Workspace).join("started");
    let probing = std::thread::spawn(move || {
        let mut running =
            Box::pin(async move { fixture.run("echo > started; sleep 1; echo alive").await });
        let until_started = async {
            while !started.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        runtime.block_on(async {
            tokio::select! {
                ended = &mut running => panic!("it should still run: {ended:?}"),
                () = until_started => {}
            }
        });
        running
    });
    let running = probing.join().unwrap();
    assert_eq!(running.await.1, "alive\n");
}

#[tokio::test]
#[ignore = "needs bubblewrap; make test-external runs it"]
async fn cgroups_of_ended_commands_are_removed() {
    let fixture = Fixture::new().await;
    let Some(groups) = &fixture.sandbox.cgroups else {
        return;
    };
    for _ in 0..3 {
        fixture.run("sleep 60 & true").await;
    }
    let group = groups.create_group(&SMALL_LIMITS).unwrap();
    assert!(group.folders().iter().all(|folder| folder.is_dir()));
    let folders = group.folders().to_vec();
    drop(group);
    assert!(folders.iter().all(|folder| !folder.exists()));
}

//! Commands in real sandboxes.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::ids::ThreadId;
use crate::sandbox::safe_fs::Resolver;
use crate::sandbox::virtual_paths::RelativePath;
use crate::sandbox::{ShelvedFolder, Transcript};
use crate::testkit::command_sandbox;

#[path = "escapes_tests.rs"]
mod escapes;
#[cfg(feature = "http")]
#[path = "way_out_tests.rs"]
mod way_out;

/// A sandbox over a fresh home, beside which things lie that no command may see.
struct Place {
    base: tempfile::TempDir,
    sandbox: BubblewrapCommandSandbox,
    dirs: ThreadDirs,
}

impl Place {
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

    async fn furnished() -> Self {
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
        let mut transcript = Transcript::keeping(1 << 20);
        let request = CommandRequest {
            dirs: &self.dirs,
            shelf: &Shelf::default(),
            command,
            time_limit,
        };
        let end = self.sandbox.run(request, &mut transcript).await.unwrap();
        (end, transcript.out(), transcript.err())
    }
}

/// The example of a sandbox, which is its own inner program.
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

const SMALL: CommandLimits = CommandLimits {
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
async fn the_port_keeps_its_promises() {
    let place = Place::furnished().await;
    command_sandbox::keeps_every_promise(&place.sandbox, &place.dirs).await;
}

#[tokio::test]
#[ignore = "needs bubblewrap; make test-external runs it"]
async fn skills_are_read_and_what_is_gone_or_off_is_not_there() {
    let place = Place::furnished().await;
    let shelved = |name: &str| {
        let host = place.base.path().join(name);
        ShelvedFolder {
            path: RelativePath::parse(&format!("public/{name}")).unwrap(),
            host,
        }
    };
    for name in ["on", "off"] {
        std::fs::create_dir(place.base.path().join(name)).unwrap();
        std::fs::write(place.base.path().join(name).join("SKILL.md"), name).unwrap();
    }
    let shelf = Shelf::new(vec![shelved("on"), shelved("gone")]);
    let command = "cd /mnt/skills; cat public/*/SKILL.md; touch new || touch public/new || touch public/on/new || rm public/on/SKILL.md || echo kept";
    let request = CommandRequest {
        dirs: &place.dirs,
        shelf: &shelf,
        command,
        time_limit: Duration::from_secs(20),
    };
    let mut transcript = Transcript::keeping(1 << 20);
    assert_eq!(
        place.sandbox.run(request, &mut transcript).await.unwrap(),
        CommandEnd::Exited(0)
    );
    assert_eq!(transcript.out(), "onkept\n");
}

#[tokio::test]
#[ignore = "needs bubblewrap; make test-external runs it"]
async fn ordinary_programs_work() {
    let place = Place::furnished().await;
    let (end, out, err) = place
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
async fn configured_mounts_variables_and_hidden_folders_are_as_configured() {
    let place = Place::furnished().await;
    let data = place.base.path().join("data");
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
        ..place.sandbox.options.clone()
    };
    let (sandbox, _) = BubblewrapCommandSandbox::open(options).await;
    let mut transcript = Transcript::keeping(1024);
    let command = "cat /mnt/data/a; echo $TOKEN; ls /usr/share | wc -l; touch /mnt/data/b";
    let request = CommandRequest {
        dirs: &place.dirs,
        shelf: &Shelf::default(),
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
async fn a_fork_bomb_stays_within_its_limit_and_ends() {
    let place = Place::with(SMALL).await;
    let command = "for i in $(seq 300); do sleep 30 & done 2>/dev/null; ls -d /proc/[0-9]* | wc -l";
    let (end, out, _) = place.run_within(command, Duration::from_secs(3)).await;
    // The shell tries again for a while to start what it may not.
    assert!(
        end == CommandEnd::TimedOut
            || end != CommandEnd::Exited(0)
            || out.trim().parse::<u32>().unwrap() <= 50,
        "{end:?} {out}"
    );
    let (end, ..) = place
        .run_within(
            "bomb() { bomb | bomb & }; bomb; sleep 30",
            Duration::from_secs(2),
        )
        .await;
    assert_ne!(end, CommandEnd::Exited(0));
    let (end, out, _) = place.run("echo next").await;
    assert_eq!((end, out.as_str()), (CommandEnd::Exited(0), "next\n"));
}

#[tokio::test]
#[ignore = "needs bubblewrap; make test-external runs it"]
async fn memory_files_and_processor_time_have_their_limits() {
    let place = Place::with(SMALL).await;
    // A shell that doubles a text.
    let (end, out, _) = place
        .run("x=xxxxxxxx; while :; do x=$x$x; done; echo ESCAPED")
        .await;
    assert_ne!(end, CommandEnd::Exited(0));
    assert!(!out.contains("ESCAPED"));
    place.run("head -c 50000000 /dev/zero > big").await;
    let written = std::fs::metadata(place.dirs.host_path(Root::Workspace).join("big"))
        .unwrap()
        .len();
    assert!(written <= SMALL.file_bytes, "{written}");
    let (end, ..) = place
        .run("for i in 1 2 3 4; do head -c 1000000 /dev/zero > /tmp/$i || exit 3; done")
        .await;
    assert_eq!(end, CommandEnd::Exited(3));
    let (end, ..) = place.run("while :; do :; done").await;
    assert!(matches!(end, CommandEnd::Exited(128..)), "{end:?}");
}

#[tokio::test]
#[ignore = "needs bubblewrap; make test-external runs it"]
async fn a_flood_of_output_ends_the_command() {
    let place = Place::with(SMALL).await;
    let mut transcript = Transcript::keeping(1000);
    let request = CommandRequest {
        dirs: &place.dirs,
        shelf: &Shelf::default(),
        command: "yes & yes >&2",
        time_limit: Duration::from_secs(20),
    };
    assert_eq!(
        place.sandbox.run(request, &mut transcript).await.unwrap(),
        CommandEnd::TooMuchOutput
    );
    assert!(transcript.out().len() + transcript.err().len() < 5000);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs bubblewrap; make test-external runs it"]
async fn a_command_outlives_the_thread_that_asked_for_it() {
    let place = Place::furnished().await;
    let runtime = tokio::runtime::Handle::current();
    let started = place.dirs.host_path(Root::Workspace).join("started");
    let asking = std::thread::spawn(move || {
        let mut running =
            Box::pin(async move { place.run("echo > started; sleep 1; echo alive").await });
        let until_started = async {
            while !started.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        runtime.block_on(async {
            tokio::select! {
                ended = &mut running => panic!("it should go on: {ended:?}"),
                () = until_started => {}
            }
        });
        running
    });
    let running = asking.join().unwrap();
    assert_eq!(running.await.1, "alive\n");
}

#[tokio::test]
#[ignore = "needs bubblewrap; make test-external runs it"]
async fn groups_of_ended_commands_are_removed() {
    let place = Place::furnished().await;
    let Some(groups) = &place.sandbox.cgroups else {
        return;
    };
    for _ in 0..3 {
        place.run("sleep 60 & true").await;
    }
    let group = groups.enter(&SMALL).unwrap();
    assert!(group.folders().iter().all(|folder| folder.is_dir()));
    let folders = group.folders().to_vec();
    drop(group);
    assert!(folders.iter().all(|folder| !folder.exists()));
}

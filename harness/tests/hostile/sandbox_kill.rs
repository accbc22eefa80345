//! When a process that embeds the sandbox is killed, all processes of its commands end with it.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use deerflow_harness::sandbox::{
    CommandLimits, CommandRequest, CommandSandbox, SkillMounts, Transcript,
};
use deerflow_harness::testkit::seeded_rng::SeededRng;
use futures_util::future::join_all;

use crate::marked::{Mark, marking_sandbox};
use crate::support::{dirs_of, setting};

const SANDBOXES: usize = 50;
/// Maximum time between the kill and the end of the last process.
const REMOVAL_LIMIT: Duration = Duration::from_secs(1);
/// Number of tries on a machine that is too busy to reap in time. An escape fails the first time.
const ROUNDS: usize = 3;
/// Variables of the process that will be killed: its folder, and the command that it runs.
const HOME: &str = "DEERFLOW_TEST_KILLED_HOME";
const COMMAND: &str = "DEERFLOW_TEST_KILLED_COMMAND";

/// A child, one in a separate session, and a daemon that was forked twice; all ignore the signals
/// that can be ignored.
const STUBBORN: &str = r#"
trap '' TERM INT HUP
stay() { trap '' TERM INT HUP; exec -a "$MARK-$1" sleep 1000; }
export -f stay
(stay child) &
setsid bash -c 'stay session' &
( (setsid bash -c 'stay daemon' </dev/null >/dev/null 2>&1 &) & )
wait
"#;

/// This program again, as a process that runs [`SANDBOXES`] commands until it is killed.
struct KilledProcess(Child);

impl KilledProcess {
    fn start(base: &Path, command: &str) -> Self {
        let mut program = Command::new(std::env::current_exe().expect("this program"));
        program
            .args([
                "--exact",
                "sandbox_kill::stands_for_a_gateway",
                "--include-ignored",
            ])
            .env(HOME, base)
            .env(COMMAND, command);
        Self(
            program
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::inherit())
                .spawn()
                .expect("a process"),
        )
    }

    /// Waits until the condition `so` holds.
    fn until(&mut self, so: impl Fn() -> bool) {
        let begun = Instant::now();
        while !so() {
            assert!(
                self.0.try_wait().expect("a child").is_none(),
                "it ended before it was killed"
            );
            assert!(
                begun.elapsed() < Duration::from_secs(120),
                "its commands did not start"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Kills the process and returns the time.
    fn kill(&mut self) -> Instant {
        self.0.kill().expect("killed");
        let killed = Instant::now();
        assert_eq!(self.0.wait().expect("an end").signal(), Some(9));
        killed
    }
}

impl Drop for KilledProcess {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _buried = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "child process that the other tests here kill; alone it does nothing"]
async fn stands_for_a_gateway() {
    #[expect(
        clippy::disallowed_methods,
        reason = "a test program gets its parameters this way"
    )]
    let variables = [HOME, COMMAND].map(|name| std::env::var(name).ok());
    let [Some(home), Some(command)] = variables else {
        return;
    };
    let base = PathBuf::from(home);
    let sandbox = marking_sandbox(&base, CommandLimits::default()).await;
    join_all((0..SANDBOXES).map(async |number| {
        let dirs = dirs_of(&base.join("home"), &format!("t{number}"));
        let request = CommandRequest {
            dirs: &dirs,
            shelf: &SkillMounts::default(),
            command: &command,
            time_limit: Duration::from_secs(900),
        };
        sandbox
            .run(request, &mut Transcript::with_limit(0))
            .await
            .unwrap()
    }))
    .await;
}

#[test]
#[ignore = "needs bubblewrap; make test-external runs it"]
fn killed_gateway_leaves_no_process_of_fifty_sandboxes() {
    let mut took = Vec::new();
    while took.iter().all(|took| *took >= REMOVAL_LIMIT) {
        let base = tempfile::tempdir().unwrap();
        let mark = Mark::of(base.path());
        let mut gateway = KilledProcess::start(base.path(), STUBBORN);
        gateway.until(|| {
            ["child", "session", "daemon"]
                .iter()
                .all(|kind| mark.count(kind) == SANDBOXES)
        });
        let running = mark.carriers().len();
        took.push(mark.gone_since(gateway.kill()));
        println!(
            "{running} processes of {SANDBOXES} sandboxes, all gone after {:?}",
            took[took.len() - 1]
        );
        assert!(
            took.len() < ROUNDS || took.iter().any(|took| *took < REMOVAL_LIMIT),
            "{took:?}"
        );
    }
}

/// The time between the starts of launcher and command is short, so there are many rounds.
#[test]
#[ignore = "needs bubblewrap; make test-external runs it"]
fn gateway_killed_while_sandboxes_start_leaves_none() {
    let seed = setting("SEED", 1);
    let chance = SeededRng::of(seed);
    for round in 0..setting("ROUNDS", 20) {
        let base = tempfile::tempdir().unwrap();
        let mark = Mark::of(base.path());
        let mut gateway = KilledProcess::start(base.path(), r#"exec -a "$MARK-begun" sleep 1000"#);
        let begun = chance.below(SANDBOXES);
        gateway.until(|| mark.count("begun") >= begun.max(1));
        let gone = mark.gone_since(gateway.kill());
        println!(
            "seed {seed} round {round}: killed when {begun} had started, all gone after {gone:?}"
        );
    }
}

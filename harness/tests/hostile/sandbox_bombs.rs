//! Commands that exhaust resources or never end: each is contained, and removed soon with all its
//! processes.

use std::time::{Duration, Instant};

use deerflow_harness::sandbox::{
    CommandEnd, CommandLimits, CommandRequest, CommandSandbox, Root, SkillMounts, Transcript,
};

use crate::marked::{Mark, marking_sandbox};
use crate::support::dirs_of;

const LIMITS: CommandLimits = CommandLimits {
    processes: 40,
    memory_bytes: 128 << 20,
    file_bytes: 1 << 20,
    open_files: 64,
    cpu_seconds: 60,
    scratch_bytes: 2 << 20,
    output_bytes: 4 << 20,
};
const TIME_LIMIT: Duration = Duration::from_secs(2);
/// Maximum time until removal after the time limit, or after an earlier end.
const REMOVAL_LIMIT: Duration = Duration::from_secs(1);
/// Number of tries on a machine that is too busy. An escape fails the first time.
const ROUNDS: usize = 3;

/// Name, command, and `true` if only its time limit ends it.
const BOMBS: &[(&str, &str, bool)] = &[
    (
        "a fork bomb",
        "bomb() { bomb | bomb & }; bomb; sleep 1000",
        false,
    ),
    (
        "a fork bomb that ignores signals",
        "trap '' TERM INT HUP CHLD; bomb() { bomb & bomb & wait; }; bomb; sleep 1000",
        false,
    ),
    (
        "processes without end",
        "while :; do sleep 1000 & done 2>/dev/null",
        false,
    ),
    (
        "processes that come and go",
        "while :; do (:) & done 2>/dev/null",
        false,
    ),
    (
        "a text that doubles",
        "x=xxxxxxxx; while :; do x=$x$x; done",
        false,
    ),
    (
        "many that take memory",
        "for i in $(seq 20); do (x=xxxxxxxx; while :; do x=$x$x; done) & done; wait; sleep 1000",
        true,
    ),
    (
        "memory in one piece",
        "head -c 4000000000 /dev/zero | tail; sleep 1000",
        true,
    ),
    (
        "a full scratch folder",
        "while :; do head -c 900000 /dev/zero >/tmp/$((n += 1)) || break; done; sleep 1000",
        true,
    ),
    (
        "full shared memory",
        "while :; do head -c 900000 /dev/zero >/dev/shm/$((n += 1)) || break; done; sleep 1000",
        true,
    ),
    ("a file without end", "cat /dev/zero >big; sleep 1000", true),
    (
        "a file with a hole",
        "truncate -s 1T sparse; sleep 1000",
        true,
    ),
    (
        "open files without end",
        "for i in $(seq 10 500); do eval \"exec $i</dev/null\" || break; done 2>/dev/null; sleep 1000",
        false,
    ),
    ("output without end", "yes", false),
    ("errors without end", "yes >&2", false),
    (
        "output of many",
        "for i in 1 2 3 4 5 6 7 8; do yes & done; wait",
        false,
    ),
    ("output without a line", "cat /dev/zero", false),
    ("a busy processor", "while :; do :; done", true),
    (
        "many busy processors",
        "for i in $(seq 16); do while :; do :; done & done; wait",
        true,
    ),
    ("sleep", "sleep 1000", true),
    (
        "deaf sleep",
        "trap '' TERM INT HUP QUIT PIPE ALRM USR1 USR2; while :; do sleep 1000; done",
        true,
    ),
    ("a stopped shell", "kill -STOP $$; sleep 1000", true),
    ("a stopped child", "sleep 1000 & kill -STOP $!; wait", true),
    (
        "a daemon, and an end",
        "( (setsid sleep 1000 </dev/null >/dev/null 2>&1 &) & )",
        false,
    ),
    (
        "a daemon that holds the pipes",
        "( (setsid sleep 1000 &) & ); echo done",
        false,
    ),
    (
        "a daemon that ignores signals",
        "( (setsid bash -c 'trap \"\" TERM HUP; sleep 1000; sleep 1000' &) & ); sleep 1000",
        true,
    ),
    (
        "daemons of daemons",
        "d() { (setsid bash -c \"$(declare -f d); sleep 0.05; d\" >/dev/null 2>&1 &); }; d; sleep 1000",
        true,
    ),
    ("a reader of nothing", "mkfifo pipe; cat pipe", true),
    (
        "a lock that is never given",
        "mkfifo lock; exec 9<>lock; read -r -u 9",
        true,
    ),
    (
        "children that are never reaped",
        "for i in $(seq 30); do (:) & done; exec sleep 1000",
        true,
    ),
    ("a name like another's", "exec -a init sleep 1000", true),
    (
        "no name and no environment",
        "(exec -a '' env -i sleep 1000) & sleep 1000",
        true,
    ),
    (
        "folders in folders",
        "while mkdir d && cd d; do :; done 2>/dev/null; sleep 1000",
        true,
    ),
];

#[tokio::test]
#[ignore = "needs bubblewrap; make test-external runs it"]
async fn every_bomb_is_contained_and_gone_within_a_second() {
    let base = tempfile::tempdir().unwrap();
    let mark = Mark::of(base.path());
    let sandbox = marking_sandbox(base.path(), LIMITS).await;
    for (number, (bomb, command, lasts)) in BOMBS.iter().enumerate() {
        let mut took = Vec::new();
        while took.iter().all(|took| *took >= REMOVAL_LIMIT) {
            let dirs = dirs_of(
                &base.path().join("home"),
                &format!("t{number}-{}", took.len()),
            );
            let request = CommandRequest {
                dirs: &dirs,
                shelf: &SkillMounts::default(),
                command,
                time_limit: TIME_LIMIT,
            };
            let mut transcript = Transcript::with_limit(1_000);
            let begun = Instant::now();
            let end = sandbox.run(request, &mut transcript).await.unwrap();
            let ended = begun.elapsed().min(TIME_LIMIT);
            assert!(
                !lasts || end == CommandEnd::TimedOut,
                "{bomb}: {end:?} {} {}",
                transcript.out(),
                transcript.err()
            );
            took.push(mark.gone_since(begun + ended));
            assert!(
                took.len() < ROUNDS || took.iter().any(|took| *took < REMOVAL_LIMIT),
                "{bomb}: {took:?}"
            );
            let largest = largest_file(&dirs.host_path(Root::Workspace));
            assert!(
                largest <= LIMITS.file_bytes,
                "{bomb}: a file of {largest} bytes"
            );
        }
        println!("{bomb}: gone after {:?}", took[took.len() - 1]);
    }
}

/// Returns the allocated size of the longest file in a folder.
fn largest_file(folder: &std::path::Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    entries
        .filter_map(|entry| entry.metadata().ok())
        .filter(|facts| facts.is_file())
        .map(|facts| facts.blocks() * 512)
        .max()
        .unwrap_or(0)
}

#[tokio::test]
#[ignore = "needs bubblewrap; make test-external runs it"]
async fn bomb_in_one_sandbox_leaves_resources_for_the_next() {
    let base = tempfile::tempdir().unwrap();
    let sandbox = marking_sandbox(base.path(), LIMITS).await;
    let home = base.path().join("home");
    let run = async |thread: &str, command: &str, time_limit| {
        let dirs = dirs_of(&home, thread);
        let mut transcript = Transcript::with_limit(1_000);
        let request = CommandRequest {
            dirs: &dirs,
            shelf: &SkillMounts::default(),
            command,
            time_limit,
        };
        let end = sandbox.run(request, &mut transcript).await.unwrap();
        (end, transcript.out())
    };
    let work = async {
        for number in 0..5 {
            let (end, out) = run(
                "neighbour",
                "seq 20 | sort -rn | head -1; echo x >kept && cat kept",
                Duration::from_secs(60),
            )
            .await;
            assert_eq!(
                (end, out.as_str()),
                (CommandEnd::Exited(0), "20\nx\n"),
                "{number}"
            );
        }
    };
    let bombs = [
        "bomb() { bomb | bomb & }; bomb; sleep 1000",
        "for i in $(seq 20); do (x=xxxxxxxx; while :; do x=$x$x; done) & done; wait",
    ];
    tokio::join!(
        work,
        run("forks", bombs[0], TIME_LIMIT),
        run("memory", bombs[1], TIME_LIMIT)
    );
}

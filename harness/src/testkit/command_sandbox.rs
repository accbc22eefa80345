//! What every [`CommandSandbox`] promises, whatever stands between a command and the machine.

use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::sandbox::thread_dirs::ThreadDirs;
use crate::sandbox::virtual_paths::Root;
use crate::sandbox::{
    CommandEnd, CommandError, CommandOutput, CommandRequest, CommandSandbox, Isolation, Pipe,
    Shelf, Transcript,
};

const LONG: Duration = Duration::from_secs(30);

/// All of it.
pub async fn keeps_every_promise(sandbox: &dyn CommandSandbox, dirs: &ThreadDirs) {
    both_outputs_and_the_exit_code_are_given(sandbox, dirs).await;
    it_begins_in_the_workspace_and_its_files_stay(sandbox, dirs).await;
    it_reads_nothing(sandbox, dirs).await;
    nothing_of_the_callers_environment_is_seen(sandbox, dirs).await;
    what_cannot_be_an_argument_is_refused(sandbox, dirs).await;
    what_another_agent_left_is_read(sandbox, dirs).await;
    the_time_limit_ends_everything_it_started(sandbox, dirs).await;
    what_was_printed_before_the_time_limit_is_given(sandbox, dirs).await;
    dropping_it_ends_it_with_what_it_started(sandbox, dirs).await;
    a_child_that_holds_the_pipe_does_not_hold_the_caller(sandbox, dirs).await;
    what_it_leaves_in_the_background_ends_with_it(sandbox, dirs).await;
    a_session_of_its_own_helps_nobody_to_stay(sandbox, dirs).await;
    what_a_command_prints_is_given_while_it_runs(sandbox, dirs).await;
}

async fn run(
    sandbox: &dyn CommandSandbox,
    dirs: &ThreadDirs,
    command: &str,
    time_limit: Duration,
) -> (CommandEnd, String, String) {
    let mut transcript = Transcript::keeping(64 * 1024);
    let end = sandbox
        .run(
            CommandRequest {
                dirs,
                shelf: &Shelf::default(),
                command,
                time_limit,
            },
            &mut transcript,
        )
        .await
        .expect("a command that starts");
    (end, transcript.out(), transcript.err())
}

async fn both_outputs_and_the_exit_code_are_given(sandbox: &dyn CommandSandbox, dirs: &ThreadDirs) {
    let (end, out, err) = run(sandbox, dirs, "echo to-out; echo to-err >&2; exit 7", LONG).await;
    assert_eq!(
        (end, out.as_str(), err.as_str()),
        (CommandEnd::Exited(7), "to-out\n", "to-err\n")
    );
    let (end, ..) = run(sandbox, dirs, "kill -9 $$", LONG).await;
    assert_eq!(end, CommandEnd::Exited(128 + 9));
}

async fn it_begins_in_the_workspace_and_its_files_stay(
    sandbox: &dyn CommandSandbox,
    dirs: &ThreadDirs,
) {
    let (end, ..) = run(
        sandbox,
        dirs,
        "echo kept > a.txt && cp a.txt /mnt/user-data/outputs/b.txt",
        LONG,
    )
    .await;
    assert_eq!(end, CommandEnd::Exited(0));
    for path in [
        dirs.host_path(Root::Workspace).join("a.txt"),
        dirs.host_path(Root::Outputs).join("b.txt"),
    ] {
        assert_eq!(
            std::fs::read_to_string(path).expect("a file that stays"),
            "kept\n"
        );
    }
}

async fn it_reads_nothing(sandbox: &dyn CommandSandbox, dirs: &ThreadDirs) {
    let (end, out, _) = run(sandbox, dirs, "cat; read -r line || echo none", LONG).await;
    assert_eq!((end, out.as_str()), (CommandEnd::Exited(0), "none\n"));
}

async fn nothing_of_the_callers_environment_is_seen(
    sandbox: &dyn CommandSandbox,
    dirs: &ThreadDirs,
) {
    // The test's own process has this one.
    let (_, out, _) = run(sandbox, dirs, "env", LONG).await;
    assert!(!out.contains("CARGO"), "{out}");
}

async fn what_cannot_be_an_argument_is_refused(sandbox: &dyn CommandSandbox, dirs: &ThreadDirs) {
    for command in ["echo \0".to_owned(), "#".repeat(1 << 20)] {
        let request = CommandRequest {
            dirs,
            shelf: &Shelf::default(),
            command: &command,
            time_limit: LONG,
        };
        let refused = sandbox.run(request, &mut Transcript::keeping(0)).await;
        assert!(
            matches!(
                refused,
                Err(CommandError::Unspeakable | CommandError::TooLong { .. })
            ),
            "{refused:?}"
        );
    }
}

async fn what_another_agent_left_is_read(sandbox: &dyn CommandSandbox, dirs: &ThreadDirs) {
    dirs.create(Root::AcpWorkspace).expect("a folder");
    std::fs::write(
        dirs.host_path(Root::AcpWorkspace).join("left.txt"),
        "left\n",
    )
    .expect("a file");
    let (_, out, _) = run(sandbox, dirs, "cat /mnt/acp-workspace/left.txt", LONG).await;
    assert_eq!(out, "left\n");
}

async fn the_time_limit_ends_everything_it_started(
    sandbox: &dyn CommandSandbox,
    dirs: &ThreadDirs,
) {
    let command = "trap '' TERM INT HUP; rm -f held; mkfifo held; exec 9<>held; (sleep 1000; touch late) & touch said; sleep 1000";
    ended_by_its_limit(sandbox, dirs, command).await;
    nobody_holds(&dirs.host_path(Root::Workspace).join("held")).await;
}

async fn what_was_printed_before_the_time_limit_is_given(
    sandbox: &dyn CommandSandbox,
    dirs: &ThreadDirs,
) {
    assert_eq!(
        ended_by_its_limit(sandbox, dirs, "echo begun; touch said; sleep 1000").await,
        "begun\n"
    );
}

/// Has a command run into its time limit that first makes a file `said` and then goes on for long: what it printed. On a machine that is
/// too busy for it to come to its file, it is tried again with a longer limit.
async fn ended_by_its_limit(
    sandbox: &dyn CommandSandbox,
    dirs: &ThreadDirs,
    command: &str,
) -> String {
    let said = dirs.host_path(Root::Workspace).join("said");
    for time_limit in [500, 2_000, 8_000, 32_000].map(Duration::from_millis) {
        // There is none unless another command made it.
        let _gone = std::fs::remove_file(&said);
        let begun = Instant::now();
        let (end, out, _) = run(sandbox, dirs, command, time_limit).await;
        assert_eq!(end, CommandEnd::TimedOut);
        assert!(
            begun.elapsed() < Duration::from_secs(100),
            "it was ended after {:?}",
            begun.elapsed()
        );
        if said.exists() {
            return out;
        }
    }
    panic!("it did not even begin");
}

async fn dropping_it_ends_it_with_what_it_started(sandbox: &dyn CommandSandbox, dirs: &ThreadDirs) {
    let fifo = dirs.host_path(Root::Workspace).join("alive");
    let command = "rm -f alive; mkfifo alive; (sleep 1000) 8<>alive & exec 9<>alive; touch started; sleep 1000";
    dropped_when_started(sandbox, dirs, command).await;
    nobody_holds(&fifo).await;
}

/// Drops a command as soon as it has made a file `started`.
async fn dropped_when_started(sandbox: &dyn CommandSandbox, dirs: &ThreadDirs, command: &str) {
    let file = dirs.host_path(Root::Workspace).join("started");
    // There is none unless another command made it.
    let _gone = std::fs::remove_file(&file);
    let mut transcript = Transcript::keeping(0);
    let request = CommandRequest {
        dirs,
        shelf: &Shelf::default(),
        command,
        time_limit: Duration::from_secs(300),
    };
    let started = async {
        while !file.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        ended = sandbox.run(request, &mut transcript) => panic!("it should go on: {ended:?}"),
        () = started => {}
    }
}

async fn what_it_leaves_in_the_background_ends_with_it(
    sandbox: &dyn CommandSandbox,
    dirs: &ThreadDirs,
) {
    let command =
        "rm -f left; mkfifo left; exec 8<>left; sleep 1000 >/dev/null 2>&1 & disown; true";
    let (end, ..) = run(sandbox, dirs, command, LONG).await;
    assert_eq!(end, CommandEnd::Exited(0));
    nobody_holds(&dirs.host_path(Root::Workspace).join("left")).await;
}

async fn a_session_of_its_own_helps_nobody_to_stay(
    sandbox: &dyn CommandSandbox,
    dirs: &ThreadDirs,
) {
    let fifo = dirs.host_path(Root::Workspace).join("apart");
    let apart = "rm -f apart; mkfifo apart; exec 9<>apart; trap '' TERM HUP; setsid sleep 1000 >/dev/null 2>&1 &";
    // Without isolation nobody knows whose child one is whose parent has ended.
    let knows_orphans = sandbox.isolation() != Isolation::None;
    let orphaned = if knows_orphans {
        "(setsid bash -c '(sleep 1000 & sleep 1000 & disown)' >/dev/null 2>&1 &);"
    } else {
        ""
    };
    ended_by_its_limit(
        sandbox,
        dirs,
        &format!("{apart} {orphaned} touch said; sleep 1000"),
    )
    .await;
    nobody_holds(&fifo).await;
    dropped_when_started(
        sandbox,
        dirs,
        &format!("{apart} {orphaned} touch started; sleep 1000"),
    )
    .await;
    nobody_holds(&fifo).await;
    if knows_orphans {
        let (end, out, _) = run(
            sandbox,
            dirs,
            &format!("{apart} {orphaned} echo started"),
            LONG,
        )
        .await;
        assert_eq!((end, out.as_str()), (CommandEnd::Exited(0), "started\n"));
        nobody_holds(&fifo).await;
    }
}

/// Makes a file when something is printed.
struct Marks<'a>(&'a Path);

impl CommandOutput for Marks<'_> {
    fn take(&mut self, _from: Pipe, _bytes: &[u8]) {
        std::fs::write(self.0, "").expect("a file");
    }
}

async fn what_a_command_prints_is_given_while_it_runs(
    sandbox: &dyn CommandSandbox,
    dirs: &ThreadDirs,
) {
    if !sandbox.prints_live() {
        return;
    }
    let heard = dirs.host_path(Root::Workspace).join("heard");
    let command = "echo begun; until [ -e heard ]; do sleep 0.02; done";
    let request = CommandRequest {
        dirs,
        shelf: &Shelf::default(),
        command,
        time_limit: Duration::from_secs(300),
    };
    let end = sandbox.run(request, &mut Marks(&heard)).await;
    assert_eq!(end.expect("a command that starts"), CommandEnd::Exited(0));
}

/// A pipe without a reader cannot be opened for writing: whoever is alive holds it open.
async fn nobody_holds(fifo: &Path) {
    let writing = || {
        std::fs::OpenOptions::new()
            .write(true)
            .custom_flags(nonblocking())
            .open(fifo)
    };
    let begun = Instant::now();
    while writing().is_ok() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "something is alive"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn a_child_that_holds_the_pipe_does_not_hold_the_caller(
    sandbox: &dyn CommandSandbox,
    dirs: &ThreadDirs,
) {
    let begun = Instant::now();
    let (end, out, _) = run(
        sandbox,
        dirs,
        "echo done; sleep 1000 &",
        Duration::from_secs(300),
    )
    .await;
    assert_eq!((end, out.as_str()), (CommandEnd::Exited(0), "done\n"));
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "it was waited for {:?}",
        begun.elapsed()
    );
}

fn nonblocking() -> i32 {
    i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).expect("a small flag")
}

//! Contract of [`CommandSandbox`], independent of the isolation.

use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::sandbox::thread_dirs::ThreadDirs;
use crate::sandbox::virtual_paths::Root;
use crate::sandbox::{
    CommandEnd, CommandError, CommandOutput, CommandRequest, CommandSandbox, Isolation, Pipe,
    SkillMounts, Transcript,
};

const LONG: Duration = Duration::from_secs(30);

/// Runs the whole contract.
pub async fn satisfies_sandbox_contract(sandbox: &dyn CommandSandbox, dirs: &ThreadDirs) {
    both_outputs_and_the_exit_code_are_returned(sandbox, dirs).await;
    command_starts_in_workspace_and_its_files_persist(sandbox, dirs).await;
    stdin_is_empty(sandbox, dirs).await;
    environment_of_caller_is_hidden(sandbox, dirs).await;
    invalid_arguments_are_rejected(sandbox, dirs).await;
    files_of_another_agent_are_readable(sandbox, dirs).await;
    time_limit_kills_all_started_processes(sandbox, dirs).await;
    output_before_the_time_limit_is_returned(sandbox, dirs).await;
    drop_kills_all_started_processes(sandbox, dirs).await;
    child_with_open_pipe_does_not_block_the_caller(sandbox, dirs).await;
    background_processes_are_killed_at_the_end(sandbox, dirs).await;
    processes_in_their_own_session_are_killed(sandbox, dirs).await;
    output_is_streamed_while_the_command_runs(sandbox, dirs).await;
}

async fn run(
    sandbox: &dyn CommandSandbox,
    dirs: &ThreadDirs,
    command: &str,
    time_limit: Duration,
) -> (CommandEnd, String, String) {
    let mut transcript = Transcript::with_limit(64 * 1024);
    let end = sandbox
        .run(
            CommandRequest {
                dirs,
                shelf: &SkillMounts::default(),
                command,
                time_limit,
            },
            &mut transcript,
        )
        .await
        .expect("a command that starts");
    (end, transcript.out(), transcript.err())
}

async fn both_outputs_and_the_exit_code_are_returned(
    sandbox: &dyn CommandSandbox,
    dirs: &ThreadDirs,
) {
    let (end, out, err) = run(sandbox, dirs, "echo to-out; echo to-err >&2; exit 7", LONG).await;
    assert_eq!(
        (end, out.as_str(), err.as_str()),
        (CommandEnd::Exited(7), "to-out\n", "to-err\n")
    );
    let (end, ..) = run(sandbox, dirs, "kill -9 $$", LONG).await;
    assert_eq!(end, CommandEnd::Exited(128 + 9));
}

async fn command_starts_in_workspace_and_its_files_persist(
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

async fn stdin_is_empty(sandbox: &dyn CommandSandbox, dirs: &ThreadDirs) {
    let (end, out, _) = run(sandbox, dirs, "cat; read -r line || echo none", LONG).await;
    assert_eq!((end, out.as_str()), (CommandEnd::Exited(0), "none\n"));
}

async fn environment_of_caller_is_hidden(sandbox: &dyn CommandSandbox, dirs: &ThreadDirs) {
    // The environment of the test process has this variable.
    let (_, out, _) = run(sandbox, dirs, "env", LONG).await;
    assert!(!out.contains("CARGO"), "{out}");
}

async fn invalid_arguments_are_rejected(sandbox: &dyn CommandSandbox, dirs: &ThreadDirs) {
    for command in ["echo \0".to_owned(), "#".repeat(1 << 20)] {
        let request = CommandRequest {
            dirs,
            shelf: &SkillMounts::default(),
            command: &command,
            time_limit: LONG,
        };
        let refused = sandbox.run(request, &mut Transcript::with_limit(0)).await;
        assert!(
            matches!(
                refused,
                Err(CommandError::Unspeakable | CommandError::TooLong { .. })
            ),
            "{refused:?}"
        );
    }
}

async fn files_of_another_agent_are_readable(sandbox: &dyn CommandSandbox, dirs: &ThreadDirs) {
    dirs.create(Root::AcpWorkspace).expect("a folder");
    std::fs::write(
        dirs.host_path(Root::AcpWorkspace).join("left.txt"),
        "left\n",
    )
    .expect("a file");
    let (_, out, _) = run(sandbox, dirs, "cat /mnt/acp-workspace/left.txt", LONG).await;
    assert_eq!(out, "left\n");
}

async fn time_limit_kills_all_started_processes(sandbox: &dyn CommandSandbox, dirs: &ThreadDirs) {
    let command = "trap '' TERM INT HUP; rm -f held; mkfifo held; exec 9<>held; (sleep 1000; touch late) & touch said; sleep 1000";
    run_into_time_limit(sandbox, dirs, command).await;
    wait_until_closed(&dirs.host_path(Root::Workspace).join("held")).await;
}

async fn output_before_the_time_limit_is_returned(sandbox: &dyn CommandSandbox, dirs: &ThreadDirs) {
    assert_eq!(
        run_into_time_limit(sandbox, dirs, "echo begun; touch said; sleep 1000").await,
        "begun\n"
    );
}

/// Runs a command that creates a file `said` and then continues until its time limit, and returns
/// its output. If the limit expires before the file exists, as on a busy machine, the command is
/// repeated with a longer limit.
async fn run_into_time_limit(
    sandbox: &dyn CommandSandbox,
    dirs: &ThreadDirs,
    command: &str,
) -> String {
    let output = dirs.host_path(Root::Workspace).join("said");
    for time_limit in [500, 2_000, 8_000, 32_000].map(Duration::from_millis) {
        // Exists only if another command created it.
        let _missing = std::fs::remove_file(&output);
        let started = Instant::now();
        let (end, out, _) = run(sandbox, dirs, command, time_limit).await;
        assert_eq!(end, CommandEnd::TimedOut);
        assert!(
            started.elapsed() < Duration::from_secs(100),
            "ended after {:?}",
            started.elapsed()
        );
        if output.exists() {
            return out;
        }
    }
    panic!("the command did not start");
}

async fn drop_kills_all_started_processes(sandbox: &dyn CommandSandbox, dirs: &ThreadDirs) {
    let fifo = dirs.host_path(Root::Workspace).join("alive");
    let command = "rm -f alive; mkfifo alive; (sleep 1000) 8<>alive & exec 9<>alive; touch started; sleep 1000";
    dropped_when_started(sandbox, dirs, command).await;
    wait_until_closed(&fifo).await;
}

/// Drops a command as soon as it has created a file `started`.
async fn dropped_when_started(sandbox: &dyn CommandSandbox, dirs: &ThreadDirs, command: &str) {
    let file = dirs.host_path(Root::Workspace).join("started");
    // Exists only if another command created it.
    let _missing = std::fs::remove_file(&file);
    let mut transcript = Transcript::with_limit(0);
    let request = CommandRequest {
        dirs,
        shelf: &SkillMounts::default(),
        command,
        time_limit: Duration::from_secs(300),
    };
    let started = async {
        while !file.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        ended = sandbox.run(request, &mut transcript) => panic!("the command should still run: {ended:?}"),
        () = started => {}
    }
}

async fn background_processes_are_killed_at_the_end(
    sandbox: &dyn CommandSandbox,
    dirs: &ThreadDirs,
) {
    let command =
        "rm -f left; mkfifo left; exec 8<>left; sleep 1000 >/dev/null 2>&1 & disown; true";
    let (end, ..) = run(sandbox, dirs, command, LONG).await;
    assert_eq!(end, CommandEnd::Exited(0));
    wait_until_closed(&dirs.host_path(Root::Workspace).join("left")).await;
}

async fn processes_in_their_own_session_are_killed(
    sandbox: &dyn CommandSandbox,
    dirs: &ThreadDirs,
) {
    let fifo = dirs.host_path(Root::Workspace).join("apart");
    let apart = "rm -f apart; mkfifo apart; exec 9<>apart; trap '' TERM HUP; setsid sleep 1000 >/dev/null 2>&1 &";
    // Without isolation, orphaned child processes cannot be attributed.
    let knows_orphans = sandbox.isolation() != Isolation::None;
    let orphaned = if knows_orphans {
        "(setsid bash -c '(sleep 1000 & sleep 1000 & disown)' >/dev/null 2>&1 &);"
    } else {
        ""
    };
    run_into_time_limit(
        sandbox,
        dirs,
        &format!("{apart} {orphaned} touch said; sleep 1000"),
    )
    .await;
    wait_until_closed(&fifo).await;
    dropped_when_started(
        sandbox,
        dirs,
        &format!("{apart} {orphaned} touch started; sleep 1000"),
    )
    .await;
    wait_until_closed(&fifo).await;
    if knows_orphans {
        let (end, out, _) = run(
            sandbox,
            dirs,
            &format!("{apart} {orphaned} echo started"),
            LONG,
        )
        .await;
        assert_eq!((end, out.as_str()), (CommandEnd::Exited(0), "started\n"));
        wait_until_closed(&fifo).await;
    }
}

/// Creates a file when output arrives.
struct OutputMarker<'a>(&'a Path);

impl CommandOutput for OutputMarker<'_> {
    fn take(&mut self, _from: Pipe, _bytes: &[u8]) {
        std::fs::write(self.0, "").expect("a file");
    }
}

async fn output_is_streamed_while_the_command_runs(
    sandbox: &dyn CommandSandbox,
    dirs: &ThreadDirs,
) {
    if !sandbox.prints_live() {
        return;
    }
    let marker = dirs.host_path(Root::Workspace).join("received");
    let command = "echo started; until [ -e received ]; do sleep 0.02; done";
    let request = CommandRequest {
        dirs,
        shelf: &SkillMounts::default(),
        command,
        time_limit: Duration::from_secs(300),
    };
    let end = sandbox.run(request, &mut OutputMarker(&marker)).await;
    assert_eq!(end.expect("a command that starts"), CommandEnd::Exited(0));
}

/// A pipe without a reader cannot be opened for writing: a live process holds it open.
async fn wait_until_closed(fifo: &Path) {
    let writing = || {
        std::fs::OpenOptions::new()
            .write(true)
            .custom_flags(nonblocking())
            .open(fifo)
    };
    let started = Instant::now();
    while writing().is_ok() {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "a process is alive"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn child_with_open_pipe_does_not_block_the_caller(
    sandbox: &dyn CommandSandbox,
    dirs: &ThreadDirs,
) {
    let started = Instant::now();
    let (end, out, _) = run(
        sandbox,
        dirs,
        "echo done; sleep 1000 &",
        Duration::from_secs(300),
    )
    .await;
    assert_eq!((end, out.as_str()), (CommandEnd::Exited(0), "done\n"));
    assert!(
        started.elapsed() < Duration::from_secs(60),
        "the call waited for {:?}",
        started.elapsed()
    );
}

fn nonblocking() -> i32 {
    i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).expect("a small flag")
}

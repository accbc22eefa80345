//! What viewers see of a command while it runs, and that the result is none the different.

use std::path::PathBuf;

use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use super::*;
use crate::runtime::agent::{AgentEvent, EventSink};
use crate::sandbox::command::host::HostCommandSandbox;
use crate::sandbox::{
    CommandEnd, CommandError, CommandLimits, CommandOutput, FileLimits, Pipe, Root,
};
use crate::testkit::tool_context;

/// A call of `bash` whose events are read.
struct Bench {
    base: tempfile::TempDir,
    ctx: ToolContext,
    events: UnboundedReceiver<AgentEvent>,
}

impl Bench {
    fn new() -> Self {
        let (sink, events) = EventSink::channel();
        let mut ctx = tool_context();
        ctx.run.sink = sink;
        Self {
            base: tempfile::tempdir().unwrap(),
            ctx,
            events,
        }
    }

    fn home(&self) -> FileHome {
        FileHome::new(self.base.path(), FileLimits::default())
    }

    fn workspace(&self) -> PathBuf {
        files_of(&self.home(), &self.ctx)
            .blocking()
            .dirs()
            .host_path(Root::Workspace)
    }

    fn bash(&self, sandbox: impl CommandSandbox, max_chars: usize) -> Bash {
        Bash::new(
            self.home(),
            Arc::new(sandbox),
            Duration::from_secs(300),
            max_chars,
        )
    }

    /// The next that viewers of `custom` are told.
    async fn told(&mut self) -> Value {
        match self.events.recv().await {
            Some(AgentEvent::LiveOutput(piece)) => json!(piece),
            other => panic!("another event: {other:?}"),
        }
    }

    /// All that was told of a stream since.
    fn rest_of(&mut self, stream: &str) -> String {
        let mut rest = String::new();
        while let Ok(AgentEvent::LiveOutput(piece)) = self.events.try_recv() {
            let piece = json!(piece);
            assert_eq!(
                (&piece["tool_call_id"], &piece["tool"]),
                (&json!("c"), &json!("bash"))
            );
            if piece["stream"] == stream {
                rest.push_str(piece["data"].as_str().unwrap());
            }
        }
        rest
    }
}

fn on_the_host() -> HostCommandSandbox {
    HostCommandSandbox::new(
        vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
        CommandLimits::default(),
    )
    .unwrap()
}

fn args(command: &str) -> BashArgs {
    BashArgs {
        _description: String::new(),
        command: command.to_owned(),
    }
}

/// A command that goes on when this file is there.
fn waiting_for(name: &str) -> String {
    format!("until [ -e {name} ]; do sleep 0.02; done")
}

#[tokio::test]
async fn what_a_command_prints_is_told_while_it_runs_and_its_result_stays_as_it_is() {
    let mut bench = Bench::new();
    let bash = bench.bash(on_the_host(), 20_000);
    let command = format!(
        "echo first; {}; echo oops >&2; {}; pwd; exit 3",
        waiting_for("one"),
        waiting_for("two")
    );
    let ctx = bench.ctx.clone();
    let running = bash.call(args(&command), &ctx);
    let watching = async {
        let workspace = bench.workspace();
        let piece = |stream: &str, data: &str| json!({"type": "tool_output", "tool_call_id": "c", "tool": "bash", "stream": stream, "data": data});
        assert_eq!(bench.told().await, piece("stdout", "first\n"));
        std::fs::write(workspace.join("one"), "").unwrap();
        assert_eq!(bench.told().await, piece("stderr", "oops\n"));
        std::fs::write(workspace.join("two"), "").unwrap();
    };
    let (result, ()) = tokio::join!(running, watching);
    assert_eq!(
        result.unwrap().content.text(),
        "first\n/mnt/user-data/workspace\nStd Error:\noops\nExit Code: 3"
    );
    assert_eq!(
        bench.rest_of("stdout"),
        "/mnt/user-data/workspace\n",
        "the rest comes before the result"
    );
}

/// Prints pieces, each long enough before the next to be told apart.
#[derive(Debug)]
struct Pieces {
    pieces: Vec<(Pipe, Vec<u8>)>,
    is_live: bool,
}

#[async_trait::async_trait]
impl CommandSandbox for Pieces {
    fn isolation(&self) -> Isolation {
        Isolation::Kernel
    }

    fn prints_live(&self) -> bool {
        self.is_live
    }

    async fn run(
        &self,
        _request: CommandRequest<'_>,
        output: &mut dyn CommandOutput,
    ) -> Result<CommandEnd, CommandError> {
        for (pipe, bytes) in &self.pieces {
            output.take(*pipe, bytes);
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        Ok(CommandEnd::Exited(0))
    }
}

fn bytewise(text: &[u8]) -> Vec<(Pipe, Vec<u8>)> {
    text.iter().map(|byte| (Pipe::Out, vec![*byte])).collect()
}

#[tokio::test(start_paused = true)]
async fn no_piece_tells_what_the_result_does_not() {
    let mut bench = Bench::new();
    let said = format!(
        "in {0}/a \u{fc}ber s3cret-value: {0}\n",
        bench.workspace().display()
    );
    let pieces = Pieces {
        pieces: bytewise(said.as_bytes()),
        is_live: true,
    };
    let bash = bench
        .bash(pieces, 0)
        .without(Secrets::new(["s3cret-value"]));
    let result = bash
        .call(args("x"), &bench.ctx)
        .await
        .unwrap()
        .content
        .text();
    assert_eq!(
        result,
        "in /mnt/user-data/workspace/a \u{fc}ber [redacted]: /mnt/user-data/workspace"
    );
    assert_eq!(bench.rest_of("stdout"), format!("{result}\n"));
}

#[tokio::test(start_paused = true)]
async fn a_chatterbox_is_told_a_few_times_a_second_up_to_its_limit() {
    let mut bench = Bench::new();
    #[derive(Debug)]
    struct Chatterbox;
    #[async_trait::async_trait]
    impl CommandSandbox for Chatterbox {
        fn isolation(&self) -> Isolation {
            Isolation::Kernel
        }

        async fn run(
            &self,
            _request: CommandRequest<'_>,
            output: &mut dyn CommandOutput,
        ) -> Result<CommandEnd, CommandError> {
            for _ in 0..10_000 {
                output.take(Pipe::Out, b"x\n");
                output.take(Pipe::Err, b"y\n");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            Ok(CommandEnd::Exited(0))
        }
    }
    let bash = bench.bash(Chatterbox, 8_000);
    let result = bash
        .call(args("x"), &bench.ctx)
        .await
        .unwrap()
        .content
        .text();
    assert!(
        result.contains("characters are left out") && result.chars().count() <= 8_000,
        "{result}"
    );
    let mut told = Vec::new();
    while let Ok(AgentEvent::LiveOutput(piece)) = bench.events.try_recv() {
        told.push(json!(piece));
    }
    let notice = told.pop().unwrap();
    assert_eq!(
        notice,
        json!({"type": "tool_output_truncated", "tool_call_id": "c", "tool": "bash", "shown_chars": 8_000})
    );
    assert!(
        (10..=20).contains(&told.len()),
        "two seconds, ten pieces in each at most: {}",
        told.len()
    );
    let chars = told
        .iter()
        .map(|piece| piece["data"].as_str().unwrap().chars().count());
    assert_eq!(chars.sum::<usize>(), 8_000);
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_that_gives_all_at_the_end_tells_nothing_before() {
    let mut bench = Bench::new();
    let bash = bench.bash(
        Pieces {
            pieces: bytewise(b"all of it\n"),
            is_live: false,
        },
        0,
    );
    assert_eq!(
        bash.call(args("x"), &bench.ctx)
            .await
            .unwrap()
            .content
            .text(),
        "all of it"
    );
    assert!(bench.events.try_recv().is_err());
}

#[tokio::test]
async fn a_call_that_nobody_listens_to_goes_on_and_one_that_is_dropped_is_silent() {
    let mut bench = Bench::new();
    let bash = bench.bash(on_the_host(), 0);
    {
        let running = bash.call(args("echo begun; sleep 1000"), &bench.ctx);
        tokio::select! {
            ended = running => panic!("it should go on: {ended:?}"),
            piece = bench.events.recv() => assert!(matches!(piece, Some(AgentEvent::LiveOutput(_)))),
        }
    }
    assert!(bench.events.try_recv().is_err());
    bench.events.close();
    assert_eq!(
        bash.call(args("echo alone"), &bench.ctx)
            .await
            .unwrap()
            .content
            .text(),
        "alone"
    );
}

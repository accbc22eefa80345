//! Tests of the live output of a command, and that it does not change the result.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::*;
use crate::runtime::agent::{AgentEvent, EventReceiver, EventSink};
use crate::sandbox::command::host::HostCommandSandbox;
use crate::sandbox::{
    CommandEnd, CommandError, CommandLimits, CommandOutput, FileLimits, Pipe, Root,
};
use crate::testkit::tool_context;

/// Fixture that calls `bash` and records its events.
struct Fixture {
    base: tempfile::TempDir,
    ctx: ToolContext,
    events: EventReceiver,
}

impl Fixture {
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

    /// Returns the next event of the `custom` stream mode.
    async fn next_event(&mut self) -> Value {
        match self.events.recv().await {
            Some(AgentEvent::LiveOutput(chunk)) => json!(chunk),
            other => panic!("another event: {other:?}"),
        }
    }

    /// Returns the remaining live output of a stream.
    fn remaining_output(&mut self, stream: &str) -> String {
        let mut rest = String::new();
        while let Some(AgentEvent::LiveOutput(chunk)) = self.events.try_recv() {
            let chunk = json!(chunk);
            assert_eq!(
                (&chunk["tool_call_id"], &chunk["tool"]),
                (&json!("c"), &json!("bash"))
            );
            if chunk["stream"] == stream {
                rest.push_str(chunk["data"].as_str().unwrap());
            }
        }
        rest
    }
}

fn host_sandbox() -> HostCommandSandbox {
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

/// Command that waits until this file exists.
fn wait_for_file(name: &str) -> String {
    format!("until [ -e {name} ]; do sleep 0.02; done")
}

#[tokio::test]
async fn output_is_streamed_and_result_is_unchanged() {
    let mut fixture = Fixture::new();
    let bash = fixture.bash(host_sandbox(), 20_000);
    let command = format!(
        "echo first; {}; echo oops >&2; {}; pwd; exit 3",
        wait_for_file("one"),
        wait_for_file("two")
    );
    let ctx = fixture.ctx.clone();
    let running = bash.call(args(&command), &ctx);
    let watching = async {
        let workspace = fixture.workspace();
        let chunk = |stream: &str, data: &str| json!({"type": "tool_output", "tool_call_id": "c", "tool": "bash", "stream": stream, "data": data});
        assert_eq!(fixture.next_event().await, chunk("stdout", "first\n"));
        std::fs::write(workspace.join("one"), "").unwrap();
        assert_eq!(fixture.next_event().await, chunk("stderr", "oops\n"));
        std::fs::write(workspace.join("two"), "").unwrap();
    };
    let (result, ()) = tokio::join!(running, watching);
    assert_eq!(
        result.unwrap().content.text(),
        "first\n/mnt/user-data/workspace\nStd Error:\noops\nExit Code: 3"
    );
    assert_eq!(
        fixture.remaining_output("stdout"),
        "/mnt/user-data/workspace\n",
        "the remaining output is streamed before the result"
    );
}

/// Sandbox that prints chunks with a pause between them, so that viewers receive them separately.
#[derive(Debug)]
struct ChunkSandbox {
    chunks: Vec<(Pipe, Vec<u8>)>,
    is_live: bool,
}

#[async_trait::async_trait]
impl CommandSandbox for ChunkSandbox {
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
        for (pipe, bytes) in &self.chunks {
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
async fn chunks_contain_nothing_that_result_hides() {
    let mut fixture = Fixture::new();
    let printed = format!(
        "in {0}/a \u{fc}ber s3cret-value: {0}\n",
        fixture.workspace().display()
    );
    let chunks = ChunkSandbox {
        chunks: bytewise(printed.as_bytes()),
        is_live: true,
    };
    let bash = fixture
        .bash(chunks, 0)
        .without(Secrets::new(["s3cret-value"]));
    let result = bash
        .call(args("x"), &fixture.ctx)
        .await
        .unwrap()
        .content
        .text();
    assert_eq!(
        result,
        "in /mnt/user-data/workspace/a \u{fc}ber [redacted]: /mnt/user-data/workspace"
    );
    assert_eq!(fixture.remaining_output("stdout"), format!("{result}\n"));
}

#[tokio::test(start_paused = true)]
async fn continuous_output_is_throttled_and_limited() {
    let mut fixture = Fixture::new();
    #[derive(Debug)]
    struct ContinuousOutput;
    #[async_trait::async_trait]
    impl CommandSandbox for ContinuousOutput {
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
    let bash = fixture.bash(ContinuousOutput, 8_000);
    let result = bash
        .call(args("x"), &fixture.ctx)
        .await
        .unwrap()
        .content
        .text();
    assert!(
        result.contains("characters are left out") && result.chars().count() <= 8_000,
        "{result}"
    );
    let mut next_event = Vec::new();
    while let Some(AgentEvent::LiveOutput(chunk)) = fixture.events.try_recv() {
        next_event.push(json!(chunk));
    }
    let notice = next_event.pop().unwrap();
    assert_eq!(
        notice,
        json!({"type": "tool_output_truncated", "tool_call_id": "c", "tool": "bash", "shown_chars": 8_000})
    );
    assert!(
        (10..=20).contains(&next_event.len()),
        "two seconds, ten pieces in each at most: {}",
        next_event.len()
    );
    let chars = next_event
        .iter()
        .map(|chunk| chunk["data"].as_str().unwrap().chars().count());
    assert_eq!(chars.sum::<usize>(), 8_000);
}

#[tokio::test(start_paused = true)]
async fn sandbox_without_live_output_streams_nothing() {
    let mut fixture = Fixture::new();
    let bash = fixture.bash(
        ChunkSandbox {
            chunks: bytewise(b"all of it\n"),
            is_live: false,
        },
        0,
    );
    assert_eq!(
        bash.call(args("x"), &fixture.ctx)
            .await
            .unwrap()
            .content
            .text(),
        "all of it"
    );
    assert!(fixture.events.try_recv().is_none());
}

#[tokio::test]
async fn call_without_viewers_continues_and_dropped_call_is_silent() {
    let mut fixture = Fixture::new();
    let bash = fixture.bash(host_sandbox(), 0);
    {
        let running = bash.call(args("echo begun; sleep 1000"), &fixture.ctx);
        tokio::select! {
            ended = running => panic!("it should go on: {ended:?}"),
            chunk = fixture.events.recv() => assert!(matches!(chunk, Some(AgentEvent::LiveOutput(_)))),
        }
    }
    assert!(fixture.events.try_recv().is_none());
    fixture.events = EventSink::channel().1;
    assert_eq!(
        bash.call(args("echo alone"), &fixture.ctx)
            .await
            .unwrap()
            .content
            .text(),
        "alone"
    );
}

//! Streams the output of a running command to viewers. It never waits for viewers and does not
//! produce the result.

use std::future::Future;
use std::pin::pin;
use std::sync::OnceLock;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::sleep;

use super::chunks::{Chunk, OutputChunks};
use crate::runtime::agent::{AgentEvent, LiveOutput, OutputStream};
use crate::sandbox::{CommandOutput, HostNames, Pipe, SkillMounts, ThreadDirs};
use crate::tools::ToolContext;

/// Interval between the first polls of the output. A poll emits at most two chunks, one per stream.
const FIRST_INTERVAL: Duration = Duration::from_millis(250);
/// Interval between later polls: a long-running command does not need updates that often.
const LATER_INTERVAL: Duration = Duration::from_secs(1);
/// Number of polls that use the first interval.
const FIRST_POLLS: u32 = 40;

/// Emits live output of one call to its viewers.
#[derive(Debug)]
pub(super) struct OutputStreamer<'a> {
    ctx: &'a ToolContext,
    tool: &'a str,
    dirs: &'a ThreadDirs,
    skills: &'a SkillMounts,
    /// Computed with the first chunk: the folders may not exist earlier.
    names: OnceLock<HostNames>,
    chunks: Mutex<OutputChunks>,
}

impl<'a> OutputStreamer<'a> {
    pub(super) fn of(
        ctx: &'a ToolContext,
        tool: &'a str,
        dirs: &'a ThreadDirs,
        skills: &'a SkillMounts,
        max_chars: usize,
    ) -> Self {
        Self {
            ctx,
            tool,
            dirs,
            skills,
            names: OnceLock::new(),
            chunks: Mutex::new(OutputChunks::with_limit(max_chars)),
        }
    }

    /// Runs `work` and periodically emits the output printed so far.
    pub(super) async fn run_streaming<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let mut polls = 0;
        loop {
            tokio::select! {
                // The timer is polled first: a command that prints continuously would otherwise
                // starve it.
                biased;
                () = sleep(if polls < FIRST_POLLS { FIRST_INTERVAL } else { LATER_INTERVAL }) => self.emit(false),
                end = &mut work => return end,
            }
            polls = FIRST_POLLS.min(polls + 1);
        }
    }

    /// Emits the remaining output after the command has ended.
    pub(super) fn finish(self) {
        self.emit(true);
    }

    fn emit(&self, is_end: bool) {
        let mut chunks = self.chunks.lock();
        if chunks.is_empty() {
            return;
        }
        let names = self
            .names
            .get_or_init(|| HostNames::of(self.dirs, self.skills));
        for chunk in chunks.next(names, is_end) {
            self.ctx
                .run
                .sink
                .emit(AgentEvent::LiveOutput(Box::new(self.event(chunk))));
        }
    }

    fn event(&self, chunk: Chunk) -> LiveOutput {
        let (tool_call_id, tool) = (self.ctx.call_id.clone(), self.tool.to_owned());
        match chunk {
            Chunk::Next(Pipe::Out, data) => LiveOutput::ToolOutput {
                tool_call_id,
                tool,
                stream: OutputStream::Stdout,
                data,
            },
            Chunk::Next(Pipe::Err, data) => LiveOutput::ToolOutput {
                tool_call_id,
                tool,
                stream: OutputStream::Stderr,
                data,
            },
            Chunk::Truncated { shown_chars } => LiveOutput::ToolOutputTruncated {
                tool_call_id,
                tool,
                shown_chars,
            },
        }
    }
}

/// Passes the output of a command both to its viewers and to the collector of its result.
#[derive(Debug)]
pub(super) struct TeeOutput<'a, O> {
    pub(super) output: &'a mut O,
    /// `None` if live output is off.
    pub(super) live: Option<&'a OutputStreamer<'a>>,
}

impl<O: CommandOutput> CommandOutput for TeeOutput<'_, O> {
    fn take(&mut self, from: Pipe, bytes: &[u8]) {
        self.output.take(from, bytes);
        if let Some(live) = self.live {
            live.chunks.lock().take(from, bytes);
        }
    }
}

//! Telling viewers what a command prints while it runs. Nothing here waits for them, and the result does not come from here.

use std::future::Future;
use std::pin::pin;
use std::sync::OnceLock;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::sleep;

use super::live_pieces::{LivePieces, Piece};
use crate::runtime::agent::{AgentEvent, LiveOutput, OutputStream};
use crate::sandbox::{CommandOutput, HostNames, Pipe, Shelf, ThreadDirs};
use crate::tools::ToolContext;

/// The time between two of the first looks at what was printed. A look tells two pieces at most, one of each stream.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The time between two of the later ones: who watches for longer does not need each line at once.
const LATER_PAUSE: Duration = Duration::from_secs(1);
/// How many the first ones are.
const FIRST_LOOKS: u32 = 40;

/// Tells the viewers of a call.
#[derive(Debug)]
pub(super) struct Live<'a> {
    ctx: &'a ToolContext,
    tool: &'a str,
    dirs: &'a ThreadDirs,
    shelf: &'a Shelf,
    /// Known from the first piece on: before, the folders may not be there.
    names: OnceLock<HostNames>,
    pieces: Mutex<LivePieces>,
}

impl<'a> Live<'a> {
    pub(super) fn of(
        ctx: &'a ToolContext,
        tool: &'a str,
        dirs: &'a ThreadDirs,
        shelf: &'a Shelf,
        max_chars: usize,
    ) -> Self {
        Self {
            ctx,
            tool,
            dirs,
            shelf,
            names: OnceLock::new(),
            pieces: Mutex::new(LivePieces::of_at_most(max_chars)),
        }
    }

    /// Works and tells from time to time what was printed meanwhile.
    pub(super) async fn beside<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let mut looks = 0;
        loop {
            tokio::select! {
                // The clock first: a command that prints without end leaves it no time in this task's turn.
                biased;
                () = sleep(if looks < FIRST_LOOKS { FIRST_PAUSE } else { LATER_PAUSE }) => self.tell(false),
                end = &mut work => return end,
            }
            looks = FIRST_LOOKS.min(looks + 1);
        }
    }

    /// Tells the rest: nothing more is printed.
    pub(super) fn finish(self) {
        self.tell(true);
    }

    fn tell(&self, is_end: bool) {
        let mut pieces = self.pieces.lock();
        if pieces.is_empty() {
            return;
        }
        let names = self
            .names
            .get_or_init(|| HostNames::of(self.dirs, self.shelf));
        for piece in pieces.next(names, is_end) {
            self.ctx
                .run
                .sink
                .emit(AgentEvent::LiveOutput(Box::new(self.event(piece))));
        }
    }

    fn event(&self, piece: Piece) -> LiveOutput {
        let (tool_call_id, tool) = (self.ctx.call_id.clone(), self.tool.to_owned());
        match piece {
            Piece::Next(Pipe::Out, data) => LiveOutput::ToolOutput {
                tool_call_id,
                tool,
                stream: OutputStream::Stdout,
                data,
            },
            Piece::Next(Pipe::Err, data) => LiveOutput::ToolOutput {
                tool_call_id,
                tool,
                stream: OutputStream::Stderr,
                data,
            },
            Piece::Truncated { shown_chars } => LiveOutput::ToolOutputTruncated {
                tool_call_id,
                tool,
                shown_chars,
            },
        }
    }
}

/// Hands what a command prints to its viewers and on to what its result is made of.
#[derive(Debug)]
pub(super) struct Watched<'a, O> {
    pub(super) output: &'a mut O,
    /// `None` where nobody is told.
    pub(super) live: Option<&'a Live<'a>>,
}

impl<O: CommandOutput> CommandOutput for Watched<'_, O> {
    fn take(&mut self, from: Pipe, bytes: &[u8]) {
        self.output.take(from, bytes);
        if let Some(live) = self.live {
            live.pieces.lock().take(from, bytes);
        }
    }
}

//! Decodes the bytes of an answer into chunks: splits them into events, passes these to a wire's
//! reader, and distinguishes a truncated stream from a complete one.

use super::chunks::Chunks;
use super::completion::Completion;
use super::provider_error::ProviderError;
use super::sse::{EventSplitter, EventTooLong, MAX_EVENT_BYTES};
use deerflow_core::messages::json_repair::{StreamRepair, repaired};

/// Reason why an answer cannot be decoded any further.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DecodeError {
    /// The stream ended before the answer was complete.
    #[error("the stream was cut before its end")]
    Truncated,
    /// An event is not valid.
    #[error("a chunk of the stream is not valid: {0}")]
    Malformed(String),
    /// An event or an answer exceeds its limit.
    #[error("{0}")]
    TooLong(String),
    /// The answer is complete and empty.
    #[error("the answer has no choices")]
    NoChoices,
    /// The provider reported an error inside its answer.
    #[error("{}", .0.message)]
    ProviderError(ProviderError),
}

impl From<EventTooLong> for DecodeError {
    fn from(_: EventTooLong) -> Self {
        Self::TooLong(format!(
            "an event of the stream is longer than {} MiB",
            MAX_EVENT_BYTES >> 20
        ))
    }
}

impl From<serde_json::Error> for DecodeError {
    fn from(error: serde_json::Error) -> Self {
        Self::Malformed(error.to_string())
    }
}

/// Reads the answers of one wire. Pure; never panics for any input. Emits no chunk after the
/// closing chunk.
pub(crate) trait AnswerReader: Send {
    /// `true` if each line of a stream is an event, `false` for server-sent events.
    const LINES: bool = false;

    /// Reads the payload of one event.
    fn event(&mut self, payload: &[u8], out: &mut Chunks) -> Result<(), DecodeError>;
    /// Reads an answer that is not streamed.
    fn whole(&mut self, body: &[u8], out: &mut Chunks) -> Result<(), DecodeError>;
    /// Emits the remaining content, the closing chunk last.
    fn close(&mut self, out: &mut Chunks) -> Result<(), DecodeError>;
    /// Returns the facts about the answer's end.
    fn completion(&self) -> &Completion;

    /// Reports whether the finish reason is known. Only usage and closing marks can follow.
    fn is_finished(&self) -> bool {
        self.completion().reason.is_some()
    }

    /// Reports whether the closing chunk was emitted. Further input has no effect.
    fn is_closed(&self) -> bool {
        self.completion().is_closed()
    }
}

/// Decoder of one answer.
#[derive(Debug)]
pub(crate) struct Decoder<R> {
    splitter: EventSplitter,
    reader: R,
    repair: StreamRepair,
    events: u64,
}

/// Passes an event to the reader. If it is malformed, repairs split characters and invalid numbers
/// and passes it once more. A reader that returns `Malformed` has not changed its state.
fn read<R: AnswerReader>(
    reader: &mut R,
    repair: &mut StreamRepair,
    payload: &[u8],
    out: &mut Chunks,
) -> Result<(), DecodeError> {
    match reader.event(payload, out) {
        Err(DecodeError::Malformed(why)) => match repair.event(payload) {
            repaired if repaired.as_bytes() == payload => Err(DecodeError::Malformed(why)),
            repaired => reader.event(repaired.as_bytes(), out),
        },
        read => read,
    }
}

impl<R: AnswerReader> Decoder<R> {
    pub(crate) fn new(reader: R) -> Self {
        let splitter = if R::LINES {
            EventSplitter::lines()
        } else {
            EventSplitter::default()
        };
        Self {
            splitter,
            reader,
            repair: StreamRepair::default(),
            events: 0,
        }
    }

    /// Decodes bytes of the stream and appends the chunks to `out`.
    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut Chunks) -> Result<(), DecodeError> {
        let Self {
            splitter,
            reader,
            repair,
            events,
        } = self;
        splitter.push(bytes, |data| {
            *events += 1;
            match data.trim_ascii() {
                b"" => Ok(()),
                _ if reader.is_closed() => Ok(()),
                payload => read(reader, repair, payload, out),
            }
        })
    }

    /// Handles the end of the stream. An answer with a finish reason is complete, even if the
    /// connection failed.
    pub(crate) fn end(&mut self, out: &mut Chunks) -> Result<(), DecodeError> {
        if let Some(rest) = self.splitter.rest()
            && !rest.trim_ascii().is_empty()
            && !self.reader.is_closed()
        {
            match read(&mut self.reader, &mut self.repair, rest.trim_ascii(), out) {
                // An incomplete last event means truncation.
                Err(DecodeError::Malformed(_)) if self.is_finished() => {}
                Err(DecodeError::Malformed(_)) => return Err(DecodeError::Truncated),
                result => result?,
            }
        }
        if self.reader.is_closed() {
            return Ok(());
        }
        if !self.is_finished() {
            return Err(DecodeError::Truncated);
        }
        self.reader.close(out)
    }

    /// Decodes an answer that is not streamed.
    pub(crate) fn whole(&mut self, body: &[u8], out: &mut Chunks) -> Result<(), DecodeError> {
        match self.reader.whole(body, out) {
            Err(DecodeError::Malformed(why)) => match repaired(&String::from_utf8_lossy(body)) {
                repaired if repaired.as_bytes() == body => return Err(DecodeError::Malformed(why)),
                repaired => self.reader.whole(repaired.as_bytes(), out)?,
            },
            read => read?,
        }
        if self.reader.is_closed() {
            Ok(())
        } else {
            self.reader.close(out)
        }
    }

    /// Reports whether the answer is complete. Further input has no effect.
    pub(crate) fn is_closed(&self) -> bool {
        self.reader.is_closed()
    }

    /// Reports whether the finish reason is known. Only usage and the closing mark can follow.
    pub(crate) fn is_finished(&self) -> bool {
        self.reader.is_finished()
    }

    /// Returns the number of events so far.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }
}

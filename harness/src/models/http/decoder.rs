//! From the bytes of an answer to its chunks: cuts events, hands them to a wire's reader, and tells a cut from an end.

use super::ending::Ending;
use super::refused::Refused;
use super::sse::{EventCutter, EventTooLong, LONGEST_EVENT};
use crate::messages::MessageChunk;
use crate::messages::json_repair::{StreamRepair, repaired};

/// Why an answer cannot be read any further.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::models) enum DecodeError {
    /// The stream ended before the answer did.
    #[error("the stream was cut before its end")]
    Cut,
    /// An event is not what it should be.
    #[error("a chunk of the stream is not valid: {0}")]
    Malformed(String),
    /// An event or an answer is longer than anybody can mean.
    #[error("{0}")]
    TooLong(String),
    /// The answer is complete and holds nothing.
    #[error("the answer has no choices")]
    NoChoices,
    /// The provider reports an error inside its answer.
    #[error("{}", .0.message)]
    Refused(Refused),
}

impl From<EventTooLong> for DecodeError {
    fn from(_: EventTooLong) -> Self {
        Self::TooLong(format!(
            "an event of the stream is longer than {} MiB",
            LONGEST_EVENT >> 20
        ))
    }
}

impl From<serde_json::Error> for DecodeError {
    fn from(error: serde_json::Error) -> Self {
        Self::Malformed(error.to_string())
    }
}

/// Where a reader puts what it understood.
pub(in crate::models) type Chunks = Vec<MessageChunk>;

/// Reads the answers of one wire. Pure; never panics, whatever it is given. After its closing chunk it says nothing more.
pub(in crate::models) trait AnswerReader: Send {
    /// Whether each line of a stream is an event, in place of server-sent events.
    const LINES: bool = false;

    /// Takes the payload of one event.
    fn event(&mut self, payload: &[u8], out: &mut Chunks) -> Result<(), DecodeError>;
    /// Takes an answer that was not streamed.
    fn whole(&mut self, body: &[u8], out: &mut Chunks) -> Result<(), DecodeError>;
    /// Says what is left to say, the closing chunk last.
    fn close(&mut self, out: &mut Chunks) -> Result<(), DecodeError>;
    /// What is known of the answer's end.
    fn ending(&self) -> &Ending;

    /// Whether the reason of the end is known; only counts and closing marks can follow.
    fn is_finished(&self) -> bool {
        self.ending().reason.is_some()
    }

    /// Whether the closing chunk was said; more bytes change nothing.
    fn is_closed(&self) -> bool {
        self.ending().is_closed()
    }
}

/// The decoder of one answer.
#[derive(Debug)]
pub(in crate::models) struct Decoder<R> {
    cutter: EventCutter,
    reader: R,
    repair: StreamRepair,
    events: u64,
}

/// Hands an event to the reader, repaired where it cannot be read as it came: a character that was cut in two or a number that
/// nobody can mean costs no answer. A reader that calls an event malformed has not changed.
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
    pub(in crate::models) fn new(reader: R) -> Self {
        let cutter = if R::LINES {
            EventCutter::of_lines()
        } else {
            EventCutter::default()
        };
        Self {
            cutter,
            reader,
            repair: StreamRepair::default(),
            events: 0,
        }
    }

    /// Takes bytes of the stream and adds what they say to `out`.
    pub(in crate::models) fn push(
        &mut self,
        bytes: &[u8],
        out: &mut Chunks,
    ) -> Result<(), DecodeError> {
        let Self {
            cutter,
            reader,
            repair,
            events,
        } = self;
        cutter.push(bytes, |data| {
            *events += 1;
            match data.trim_ascii() {
                b"" => Ok(()),
                _ if reader.is_closed() => Ok(()),
                payload => read(reader, repair, payload, out),
            }
        })
    }

    /// Takes the end of the stream, however it came. An answer whose end has a reason is complete.
    pub(in crate::models) fn end(&mut self, out: &mut Chunks) -> Result<(), DecodeError> {
        if let Some(rest) = self.cutter.rest()
            && !rest.trim_ascii().is_empty()
            && !self.reader.is_closed()
        {
            match read(&mut self.reader, &mut self.repair, rest.trim_ascii(), out) {
                // Half an event is no malformed one: it was cut.
                Err(DecodeError::Malformed(_)) if self.is_finished() => {}
                Err(DecodeError::Malformed(_)) => return Err(DecodeError::Cut),
                taken => taken?,
            }
        }
        if self.reader.is_closed() {
            return Ok(());
        }
        if !self.is_finished() {
            return Err(DecodeError::Cut);
        }
        self.reader.close(out)
    }

    /// Takes a whole answer that was not streamed.
    pub(in crate::models) fn whole(
        &mut self,
        body: &[u8],
        out: &mut Chunks,
    ) -> Result<(), DecodeError> {
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

    /// Whether the answer is complete; more bytes change nothing.
    pub(in crate::models) fn is_closed(&self) -> bool {
        self.reader.is_closed()
    }

    /// Whether the reason of the end is known; only usage and the closing mark can follow.
    pub(in crate::models) fn is_finished(&self) -> bool {
        self.reader.is_finished()
    }

    /// How many events the stream brought.
    pub(in crate::models) fn events(&self) -> u64 {
        self.events
    }
}

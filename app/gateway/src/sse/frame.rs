//! The bytes of frames: `event`, `data`, `id`, an empty line.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use harness::runtime::stream_bridge::{EventData, Gap, StreamEvent};

use crate::dialect::Dialect;

/// Data of this size or more is handed on as it is; less is copied together with its neighbours into one chunk.
const SHARE_FROM: usize = 16 * 1024;

/// How frames are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whose line ends.
    pub dialect: Dialect,
    /// Whether events carry their id, so that a client can come back.
    pub ids: bool,
}

/// Frames on their way out. Small ones gather in one buffer; large data is shared with every other viewer of the run.
#[derive(Debug)]
pub struct Frames {
    style: Style,
    gathered: BytesMut,
    ready: VecDeque<Bytes>,
    size: usize,
}

impl Frames {
    /// Nothing yet.
    pub fn new(style: Style) -> Self {
        Self {
            style,
            gathered: BytesMut::new(),
            ready: VecDeque::new(),
            size: 0,
        }
    }

    /// How many bytes wait.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The next chunk of the body.
    pub fn next_chunk(&mut self) -> Option<Bytes> {
        if self.ready.is_empty() && !self.gathered.is_empty() {
            self.ready.push_back(self.gathered.split().freeze());
        }
        let chunk = self.ready.pop_front()?;
        self.size -= chunk.len();
        Some(chunk)
    }

    /// An event of a run.
    pub fn event(&mut self, event: &StreamEvent) {
        let id = self.style.ids.then(|| event.id.to_string());
        self.frame(&event.event, event.data.pieces(), id.as_deref());
    }

    /// An event under an id that is not its run's.
    pub fn named(&mut self, event: &str, data: &EventData, id: &str) {
        self.frame(event, data.pieces(), Some(id));
    }

    /// The hole in a replay; at most the run's end follows it.
    pub fn gap(&mut self, gap: &Gap) {
        let data = serde_json::to_vec(gap)
            .map(Bytes::from)
            .unwrap_or_else(|_| Bytes::from_static(b"null"));
        self.frame("gap", [&data], None);
    }

    /// The run's end.
    pub fn end(&mut self) {
        self.frame("end", [&Bytes::from_static(b"null")], None);
    }

    /// A comment that shows the stream lives.
    pub fn heartbeat(&mut self) {
        let end = self.style.dialect.line_end();
        self.put(": heartbeat");
        self.put(end);
        self.put(end);
    }

    fn frame<const N: usize>(&mut self, event: &str, data: [&Bytes; N], id: Option<&str>) {
        let end = self.style.dialect.line_end();
        for piece in ["event: ", event, end, "data: "] {
            self.put(piece);
        }
        for piece in data {
            self.data(piece);
        }
        self.put(end);
        if let Some(id) = id {
            for piece in ["id: ", id, end] {
                self.put(piece);
            }
        }
        self.put(end);
    }

    fn put(&mut self, text: &str) {
        self.gathered.extend_from_slice(text.as_bytes());
        self.size += text.len();
    }

    fn data(&mut self, data: &Bytes) {
        self.size += data.len();
        if data.len() < SHARE_FROM {
            self.gathered.extend_from_slice(data);
            return;
        }
        self.ready.push_back(self.gathered.split().freeze());
        self.ready.push_back(data.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness::ids::RunId;
    use harness::runtime::stream_bridge::EventId;

    fn event(data: &'static [u8]) -> StreamEvent {
        StreamEvent {
            id: EventId { seq: 3, attempt: 1 },
            event: "values".into(),
            data: Bytes::from_static(data).into(),
        }
    }

    fn written(style: Style, write: impl FnOnce(&mut Frames)) -> String {
        let mut frames = Frames::new(style);
        write(&mut frames);
        let mut text = Vec::new();
        while let Some(chunk) = frames.next_chunk() {
            text.extend_from_slice(&chunk);
        }
        assert_eq!(frames.size(), 0);
        String::from_utf8(text).unwrap()
    }

    const DEERFLOW: Style = Style {
        dialect: Dialect::DeerFlow,
        ids: true,
    };
    const PLATFORM: Style = Style {
        dialect: Dialect::Platform,
        ids: false,
    };

    #[test]
    fn frames_are_the_recorded_bytes_of_each_dialect() {
        let all = |frames: &mut Frames| {
            frames.event(&event(br#"{"a":1}"#));
            frames.heartbeat();
            frames.end();
        };
        assert_eq!(
            written(DEERFLOW, all),
            "event: values\ndata: {\"a\":1}\nid: 3-1\n\n: heartbeat\n\nevent: end\ndata: null\n\n"
        );
        assert_eq!(
            written(PLATFORM, all),
            "event: values\r\ndata: {\"a\":1}\r\n\r\n: heartbeat\r\n\r\nevent: end\r\ndata: null\r\n\r\n"
        );
    }

    #[test]
    fn a_gap_names_all_that_the_web_ui_checks() {
        let id = |seq| EventId { seq, attempt: 1 };
        let run = RunId::parse("r").unwrap();
        let text = written(DEERFLOW, |frames| {
            frames.gap(&Gap::new(&run, None, id(7), id(9)))
        });
        assert_eq!(
            text,
            "event: gap\ndata: {\"code\":\"stream_replay_gap\",\"run_id\":\"r\",\"requested_event_id\":null,\
             \"earliest_available_event_id\":\"7-1\",\"latest_available_event_id\":\"9-1\",\"recovery\":\"reload_durable_state\"}\n\n"
        );
    }

    #[test]
    fn small_frames_leave_as_one_chunk_and_large_data_is_shared() {
        let mut frames = Frames::new(DEERFLOW);
        frames.event(&event(b"1"));
        frames.event(&event(b"2"));
        assert!(frames.next_chunk().is_some());
        assert!(frames.next_chunk().is_none());
        let large = StreamEvent {
            data: Bytes::from(vec![b'x'; SHARE_FROM]).into(),
            ..event(b"")
        };
        frames.event(&large);
        frames.event(&event(b"3"));
        let chunks: Vec<Bytes> = std::iter::from_fn(|| frames.next_chunk()).collect();
        assert_eq!(chunks.len(), 3);
        assert_eq!(chunks[1].as_ptr(), large.data.pieces()[0].as_ptr());
    }
}

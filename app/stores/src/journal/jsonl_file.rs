//! One thread's journal file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use deerflow_core::fail_points;
use deerflow_core::ids::{RunId, ThreadId};
use deerflow_domain::readiness::StoredFile;
use deerflow_runtime::runs::store::{NewRunEvent, RunEvent, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::db::entity::{micros, moment};
use crate::files::file_id::FileId;

/// A thread's file and its cached state.
#[derive(Debug)]
pub(super) struct Journal {
    file: PathBuf,
    state: Option<FileState>,
}

/// State of the file after it was read once.
#[derive(Debug, Clone, Copy)]
struct FileState {
    /// Id of the file, if it existed.
    id: Option<FileId>,
    /// The greatest assigned seq.
    last_seq: u64,
    /// Length of all complete lines, in bytes.
    length: u64,
}

/// A line with an event. Timestamps are microseconds since 1970.
#[derive(Debug, Serialize, Deserialize)]
struct EventLine {
    seq: u64,
    thread_id: ThreadId,
    run_id: RunId,
    user_id: Option<String>,
    event_type: String,
    category: String,
    content: Value,
    metadata: Map<String, Value>,
    created_at: i64,
}

/// A line with the greatest assigned seq, written when events are removed.
#[derive(Debug, Serialize, Deserialize)]
struct MarkLine {
    last_seq: u64,
}

impl Journal {
    /// Creates the journal of `thread` without reading it.
    pub(super) fn new(directory: &Path, thread: &ThreadId) -> Self {
        Self {
            file: directory.join(format!("{thread}.jsonl")),
            state: None,
        }
    }

    /// Appends events durably and returns the seq of the first.
    pub(super) fn append(&mut self, events: Vec<NewRunEvent>) -> Result<u64, StoreError> {
        let state = self.state()?;
        self.check(state)?;
        let first = state.last_seq + 1;
        let mut text = Vec::new();
        let mut last_seq = state.last_seq;
        for event in events {
            last_seq += 1;
            put_line(&mut text, &EventLine::new(last_seq, event))
                .map_err(|error| self.failed(error))?;
        }
        let length = state.length + text.len() as u64;
        let id = match self.write_at_end(state.length, &text) {
            Ok(id) => id,
            Err(error) => {
                // The content is unknown now; the next use reads it again and cuts off an
                // incomplete line.
                self.state = None;
                return Err(self.failed(error));
            }
        };
        let state = FileState {
            id: Some(id),
            last_seq,
            length,
        };
        self.state = Some(state);
        // The file may have been removed during the write.
        self.check(state)?;
        Ok(first)
    }

    /// Fails if the file is not the one that was read: its content would be lost, and a new file
    /// would hide that.
    fn check(&self, state: FileState) -> Result<(), StoreError> {
        match state
            .id
            .map_or(Ok(()), |id| id.check(StoredFile::Journal, &self.file))
        {
            Ok(()) => Ok(()),
            Err(reason) => {
                tracing::error!(file = %self.file.display(), %reason, "a journal file was changed by another program: writes to it are refused until it is back or the process is restarted");
                Err(StoreError::Unavailable(reason.to_string()))
            }
        }
    }

    /// Returns all events in order.
    pub(super) fn read(&mut self) -> Result<Vec<RunEvent>, StoreError> {
        self.state()?;
        self.lines()
            .map(|(events, _)| events)
            .map_err(|error| self.failed(error))
    }

    /// Removes a run's events. Their seqs are not assigned again.
    pub(super) fn delete_run(&mut self, run: &RunId) -> Result<(), StoreError> {
        let state = self.state()?;
        let rows = self.read()?;
        if rows.iter().all(|row| row.event.run_id != *run) {
            return Ok(());
        }
        self.state = None;
        self.replace(
            state.last_seq,
            rows.into_iter().filter(|row| row.event.run_id != *run),
        )
        .map_err(|error| self.failed(error))
    }

    /// Removes the file.
    pub(super) fn delete(&mut self) -> Result<(), StoreError> {
        self.state = None;
        match fs::remove_file(&self.file).and_then(|()| self.flush_directory()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed(error)),
            _ => Ok(()),
        }
    }

    fn state(&mut self) -> Result<FileState, StoreError> {
        if let Some(state) = self.state {
            return Ok(state);
        }
        let state = self.repair().map_err(|error| self.failed(error))?;
        self.state = Some(state);
        Ok(state)
    }

    /// Cuts off an incomplete last line.
    fn repair(&self) -> io::Result<FileState> {
        let text = match fs::read(&self.file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(FileState {
                    id: None,
                    last_seq: 0,
                    length: 0,
                });
            }
            other => other?,
        };
        let length = text
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at as u64 + 1);
        if length < text.len() as u64 {
            tracing::warn!(file = %self.file.display(), cut = text.len() as u64 - length, "the last line of a journal was incomplete");
            let file = OpenOptions::new().write(true).open(&self.file)?;
            file.set_len(length)?;
            file.sync_all()?;
        }
        let (_, last_seq) = self.lines()?;
        Ok(FileState {
            id: Some(FileId::at(&self.file)?),
            last_seq,
            length,
        })
    }

    /// Returns the readable events and the greatest seq. An unreadable line is logged and skipped,
    /// so that it does not hide others.
    fn lines(&self) -> io::Result<(Vec<RunEvent>, u64)> {
        let text = match fs::read(&self.file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            other => other?,
        };
        let mut events = Vec::new();
        let mut last_seq = 0;
        for (n, line) in text
            .split(|byte| *byte == b'\n')
            .enumerate()
            .filter(|(_, line)| !line.is_empty())
        {
            match (
                serde_json::from_slice::<EventLine>(line),
                serde_json::from_slice::<MarkLine>(line),
            ) {
                (Ok(line), _) => {
                    last_seq = last_seq.max(line.seq);
                    events.push(line.into_event());
                }
                (_, Ok(mark)) => last_seq = last_seq.max(mark.last_seq),
                (Err(error), _) => {
                    tracing::error!(file = %self.file.display(), line = n + 1, %error, "a journal line is unreadable")
                }
            }
        }
        Ok((events, last_seq))
    }

    fn write_at_end(&self, length: u64, text: &[u8]) -> io::Result<FileId> {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.file)?;
        let written = file.write_all(text).and_then(|()| file.sync_data());
        if let Err(error) = written {
            // A full disk leaves part of the text: truncate it while its length is known.
            let _ = file.set_len(length);
            return Err(error);
        }
        fail_points::pass("journal.appended");
        if length == 0 {
            self.flush_directory()?;
        }
        FileId::of(&file)
    }

    /// Writes the whole journal to a new file, then renames it over the old one.
    fn replace(&self, last_seq: u64, rows: impl Iterator<Item = RunEvent>) -> io::Result<()> {
        let mut text = Vec::new();
        put_line(&mut text, &MarkLine { last_seq })?;
        for row in rows {
            put_line(&mut text, &EventLine::new(row.seq, row.event))?;
        }
        let rewritten = self.file.with_extension("jsonl.new");
        let mut file = File::create(&rewritten)?;
        file.write_all(&text)?;
        file.sync_all()?;
        fail_points::pass("journal.rewritten");
        fs::rename(&rewritten, &self.file)?;
        self.flush_directory()
    }

    fn flush_directory(&self) -> io::Result<()> {
        self.file
            .parent()
            .map_or(Ok(()), |directory| File::open(directory)?.sync_all())
    }

    fn failed(&self, error: io::Error) -> StoreError {
        let text = format!("{}: {error}", self.file.display());
        match error.kind() {
            io::ErrorKind::NotFound => StoreError::Unavailable(text),
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::PermissionDenied => StoreError::NotWritable(text),
            _ => StoreError::Failed(text),
        }
    }
}

fn put_line(text: &mut Vec<u8>, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *text, line)?;
    text.push(b'\n');
    Ok(())
}

impl EventLine {
    fn new(seq: u64, event: NewRunEvent) -> Self {
        Self {
            seq,
            thread_id: event.thread_id,
            run_id: event.run_id,
            user_id: event.user_id,
            event_type: event.event_type,
            category: event.category,
            content: event.content.into_value(),
            metadata: event.metadata,
            created_at: micros(event.created_at),
        }
    }

    fn into_event(self) -> RunEvent {
        RunEvent {
            seq: self.seq,
            event: NewRunEvent {
                thread_id: self.thread_id,
                run_id: self.run_id,
                user_id: self.user_id,
                event_type: self.event_type,
                category: self.category,
                content: self.content.into(),
                metadata: self.metadata,
                created_at: moment(self.created_at),
            },
        }
    }
}

#[cfg(test)]
#[path = "jsonl_file_tests.rs"]
mod tests;

//! The journal as files: one per thread, one JSON object per line, flushed to the disk before an append returns.
//!
//! A crash in the middle of an append leaves a torn last line; it is cut off when the thread is next opened, because that append
//! never returned. One process may use a directory at a time: the data directory's lock sees to that.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use harness::ids::{RunId, ThreadId};
use harness::runtime::actor_context::Owner;
use harness::runtime::runs::store::{EventQuery, NewRunEvent, Order, RunEvent, RunEventStore, StoreError, category};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::entity::{micros, moment};

/// The journal over files of JSON lines.
#[derive(Debug, Clone)]
pub struct JsonlRunEventStore {
    directory: Arc<PathBuf>,
    threads: Arc<Mutex<HashMap<ThreadId, Arc<Mutex<Option<Journal>>>>>>,
}

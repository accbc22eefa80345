//! Cache of a message's JSON in the format of a provider.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::value::RawValue;

/// Cache of one message, whose fields are `T`.
pub(super) type Cache<T> = Mutex<Option<Cached<T>>>;

/// Cached JSON. `format` identifies the function that built it.
#[derive(Debug)]
pub(super) enum Cached<T> {
    /// JSON of this message; `None` if the format omits the message.
    Own {
        format: u64,
        json: Option<Arc<RawValue>>,
    },
    /// JSON of this message and of others that follow it in requests.
    First(Box<Joined<T>>),
    /// The JSON of this message is part of an earlier message's [`Cached::First`].
    Following { format: u64 },
}

/// JSON of consecutive messages, separated by commas.
#[derive(Debug)]
pub(super) struct Joined<T> {
    pub(super) format: u64,
    /// The messages after the first, and whether each was in its form for models. Weak, because
    /// messages in different orders in two lists would otherwise retain each other.
    pub(super) following: Box<[(Weak<T>, bool)]>,
    pub(super) json: Bytes,
}

impl<T> Cached<T> {
    /// Returns the format of the JSON.
    pub(super) fn format(&self) -> u64 {
        match self {
            Self::Own { format, .. } | Self::Following { format } => *format,
            Self::First(joined) => joined.format,
        }
    }
}

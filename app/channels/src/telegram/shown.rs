//! Fingerprints of the texts that live messages show, to omit edits that change nothing.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use parking_lot::Mutex;
use uuid::Uuid;

/// Number of answers whose fingerprints are stored.
const CAPACITY: usize = 512;

/// Fingerprints of the newest answers.
#[derive(Debug, Default)]
pub(super) struct ShownTexts(Mutex<VecDeque<(Uuid, u64)>>);

impl ShownTexts {
    /// `true` if the live message of an answer shows this text.
    pub(super) fn shows(&self, key: Uuid, text: &str) -> bool {
        let print = fingerprint(text);
        self.0.lock().iter().any(|shown| *shown == (key, print))
    }

    /// Records that the live message of an answer shows a text.
    pub(super) fn record(&self, key: Uuid, text: &str) {
        let mut texts = self.0.lock();
        texts.retain(|(of, _)| *of != key);
        if texts.len() == CAPACITY {
            texts.pop_front();
        }
        texts.push_back((key, fingerprint(text)));
    }
}

fn fingerprint(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

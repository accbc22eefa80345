//! Parser of DeerFlow's `store.json`.

use chrono::{DateTime, Utc};
use harness::ids::ThreadId;
use serde_json::{Map, Value};

/// Maximum length of a chat, topic or person, in bytes.
const MAX_ID_BYTES: usize = 256;
/// Maximum number of conversations of one platform.
const MAX_ENTRIES: usize = 200_000;

/// Conversation of the file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) chat: String,
    pub(super) topic: Option<String>,
    pub(super) thread_id: ThreadId,
    /// Person who wrote last.
    pub(super) person: Option<String>,
    pub(super) created_at: Option<DateTime<Utc>>,
    pub(super) updated_at: Option<DateTime<Utc>>,
}

impl Entry {
    /// Returns the key of the conversation.
    pub(super) fn key(&self) -> String {
        match &self.topic {
            Some(topic) => format!("{}:{topic}", self.chat),
            None => self.chat.clone(),
        }
    }
}

/// Conversations of one platform.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Parsed {
    pub(super) entries: Vec<Entry>,
    /// Number of entries of the platform that are not valid.
    pub(super) skipped: usize,
}

/// Reads the entries of a platform. Entries that are not valid are skipped.
///
/// # Errors
/// The text is not a JSON object.
pub(super) fn parse(bytes: &[u8], provider: &str) -> Result<Parsed, serde_json::Error> {
    let file: Map<String, Value> = serde_json::from_slice(bytes)?;
    let mut parsed = Parsed::default();
    for (key, value) in &file {
        let Some(place) = key
            .strip_prefix(provider)
            .and_then(|rest| rest.strip_prefix(':'))
        else {
            continue;
        };
        match entry(place, value).filter(|_| parsed.entries.len() < MAX_ENTRIES) {
            Some(entry) => parsed.entries.push(entry),
            None => parsed.skipped += 1,
        }
    }
    Ok(parsed)
}

fn entry(place: &str, value: &Value) -> Option<Entry> {
    let (chat, topic) = match place.split_once(':') {
        Some((chat, topic)) => (chat, Some(topic)),
        None => (place, None),
    };
    if !is_id(chat) || !topic.is_none_or(is_id) {
        return None;
    }
    let value = value.as_object()?;
    let thread_id = ThreadId::parse(value.get("thread_id")?.as_str()?).ok()?;
    let person = match value.get("user_id") {
        Some(Value::String(id)) => Some(id.clone()),
        Some(Value::Number(id)) => Some(id.to_string()),
        _ => None,
    };
    Some(Entry {
        chat: chat.to_owned(),
        topic: topic.map(str::to_owned),
        thread_id,
        person: person.filter(|id| is_id(id)),
        created_at: time(value.get("created_at")),
        updated_at: time(value.get("updated_at")),
    })
}

fn is_id(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_ID_BYTES && !text.chars().any(char::is_control)
}

/// Converts epoch seconds, which may have a fraction.
fn time(value: Option<&Value>) -> Option<DateTime<Utc>> {
    /// Last second of the year 9999.
    const MAX: f64 = 253_402_300_799.0;
    let seconds = value?.as_f64()?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the range is checked before, fractions of a microsecond have no meaning"
    )]
    (0.0..=MAX)
        .contains(&seconds)
        .then(|| DateTime::from_timestamp_micros((seconds * 1e6) as i64))
        .flatten()
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;

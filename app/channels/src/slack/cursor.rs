//! Newest stored timestamp of each channel and thread, from which missed messages are fetched.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use super::text::is_timestamp;

/// Maximum number of channels.
const MAX_CHANNELS: usize = 200;
/// Maximum number of threads.
const MAX_THREADS: usize = 100;

/// Place whose messages are listed by one method: a channel, or a thread of a channel.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Place {
    /// Channel.
    pub(super) channel: String,
    /// Root of the thread.
    pub(super) thread: Option<String>,
}

impl Place {
    fn encode(&self) -> String {
        match &self.thread {
            Some(thread) => format!("{}/{thread}", self.channel),
            None => self.channel.clone(),
        }
    }

    fn decode(text: &str) -> Self {
        let (channel, thread) = match text.split_once('/') {
            Some((channel, thread)) => (channel, Some(thread.to_owned())),
            None => (text, None),
        };
        Self {
            channel: channel.to_owned(),
            thread,
        }
    }
}

/// Newest timestamps. Places whose missed messages are being fetched do not advance until that is
/// complete, so that a crash in between loses none of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Cursors {
    newest: BTreeMap<Place, String>,
    held: HashSet<Place>,
    ahead: BTreeMap<Place, String>,
}

impl Cursors {
    /// Decodes a stored cursor; an invalid one is empty.
    pub(super) fn decode(stored: Option<&str>) -> Self {
        let stored = stored.and_then(|text| serde_json::from_str(text).ok());
        let stored: BTreeMap<String, String> = stored.unwrap_or_default();
        let newest: BTreeMap<Place, String> = stored
            .into_iter()
            .filter(|(_, ts)| is_timestamp(ts))
            .map(|(place, ts)| (Place::decode(&place), ts))
            .collect();
        let held = newest.keys().cloned().collect();
        Self {
            newest,
            held,
            ahead: BTreeMap::new(),
        }
    }

    /// Encodes the cursor for storage.
    pub(super) fn encode(&self) -> String {
        let plain: BTreeMap<String, &String> = self
            .newest
            .iter()
            .map(|(place, ts)| (place.encode(), ts))
            .collect();
        serde_json::to_string(&plain).unwrap_or_default()
    }

    /// Returns the places to fetch from, those with the newest messages first.
    pub(super) fn places(&self) -> Vec<(Place, String)> {
        let mut places: Vec<_> = self.newest.clone().into_iter().collect();
        places.sort_by_key(|(_, ts)| Reverse(order(ts)));
        places
    }

    /// Records a stored message. Fetched ones advance their place even while it is held.
    pub(super) fn store(
        &mut self,
        channel: &str,
        thread: Option<&str>,
        ts: &str,
        fetched: Option<&Place>,
    ) {
        let places = [None, thread].map(|thread| Place {
            channel: channel.to_owned(),
            thread: thread.map(str::to_owned),
        });
        let count = if thread.is_some() { 2 } else { 1 };
        for place in places.into_iter().take(count) {
            let map = if self.held.contains(&place) && fetched != Some(&place) {
                &mut self.ahead
            } else {
                &mut self.newest
            };
            advance(map, place, ts);
        }
        self.bound();
    }

    /// Ends the fetch of a place.
    pub(super) fn fetched(&mut self, place: &Place) {
        self.held.remove(place);
        if let Some(ts) = self.ahead.remove(place) {
            advance(&mut self.newest, place.clone(), &ts);
        }
    }

    fn bound(&mut self) {
        for (max, is_thread) in [(MAX_CHANNELS, false), (MAX_THREADS, true)] {
            let of_kind = |place: &&Place| place.thread.is_some() == is_thread;
            while self.newest.keys().filter(of_kind).count() > max {
                let oldest = self
                    .newest
                    .iter()
                    .filter(|(place, _)| of_kind(place))
                    .min_by(|(_, a), (_, b)| order(a).cmp(&order(b)))
                    .map(|(place, _)| place.clone());
                match oldest {
                    Some(oldest) => self.newest.remove(&oldest),
                    None => return,
                };
            }
        }
    }
}

fn advance(map: &mut BTreeMap<Place, String>, place: Place, ts: &str) {
    let newest = map.entry(place).or_default();
    if order(newest) < order(ts) {
        ts.clone_into(newest);
    }
}

/// Returns the key by which timestamps are ordered.
fn order(ts: &str) -> (u64, u64) {
    let (seconds, fraction) = ts.split_once('.').unwrap_or((ts, ""));
    let fraction = format!("{fraction:0<9}");
    let fraction = fraction.get(..9).unwrap_or_default();
    (seconds.parse().unwrap_or(0), fraction.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_message_advances_its_channel_and_thread() {
        let mut cursors = Cursors::default();
        cursors.store("C1", None, "2.1", None);
        cursors.store("C1", Some("1.1"), "3.1", None);
        cursors.store("C1", None, "2.5", None);
        assert_eq!(cursors.encode(), r#"{"C1":"3.1","C1/1.1":"3.1"}"#);
    }

    #[test]
    fn held_place_advances_when_its_fetch_is_complete() {
        let mut cursors = Cursors::decode(Some(r#"{"C1":"1.1"}"#));
        let place = cursors.places().remove(0).0;
        cursors.store("C1", None, "9.1", None);
        assert_eq!(cursors.encode(), r#"{"C1":"1.1"}"#);
        cursors.store("C1", None, "2.1", Some(&place));
        assert_eq!(cursors.encode(), r#"{"C1":"2.1"}"#);
        cursors.fetched(&place);
        assert_eq!(cursors.encode(), r#"{"C1":"9.1"}"#);
    }

    #[test]
    fn oldest_places_are_dropped_beyond_the_maximum() {
        let mut cursors = Cursors::default();
        for channel in 0..=MAX_CHANNELS {
            cursors.store(
                &format!("C{channel}"),
                None,
                &format!("{}.1", channel + 1),
                None,
            );
        }
        let places = cursors.places();
        assert_eq!(places.len(), MAX_CHANNELS);
        assert_eq!(places[0].0.channel, format!("C{MAX_CHANNELS}"));
        assert!(places.iter().all(|(place, _)| place.channel != "C0"));
    }

    #[test]
    fn invalid_cursor_is_empty() {
        for stored in ["", "7", "[]", r#"{"C1":7}"#, r#"{"C1":"x"}"#] {
            assert!(
                Cursors::decode(Some(stored)).places().is_empty(),
                "{stored}"
            );
        }
    }
}

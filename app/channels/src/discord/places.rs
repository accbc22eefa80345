//! Channels as the events of the gateway describe them.

use std::collections::HashMap;

use serde_json::Value;

use super::ids::id;

/// Maximum number of channels.
const MAX_PLACES: usize = 10_000;
/// Types of threads.
const THREADS: [u64; 3] = [10, 11, 12];
/// Types of channels whose messages can have threads.
const WITH_THREADS: [u64; 2] = [0, 5];

/// Facts about a channel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Guild.
    pub(super) guild: Option<String>,
    /// Parent channel, if it is a thread.
    pub(super) parent: Option<String>,
    /// Creator, if it is a thread.
    pub(super) owner: Option<String>,
    /// `true` if its messages can have threads.
    pub(super) has_threads: bool,
}

impl Place {
    /// Reads a channel of the API. `guild` is used if the channel does not name it.
    pub(super) fn read(channel: &Value, guild: Option<&str>) -> Self {
        let kind = channel["type"].as_u64();
        let is_thread = kind.is_some_and(|kind| THREADS.contains(&kind));
        let of_thread = |key: &str| {
            id(&channel[key])
                .filter(|_| is_thread)
                .map(ToOwned::to_owned)
        };
        Self {
            guild: id(&channel["guild_id"]).or(guild).map(ToOwned::to_owned),
            parent: of_thread("parent_id"),
            owner: of_thread("owner_id"),
            has_threads: kind.is_some_and(|kind| WITH_THREADS.contains(&kind)),
        }
    }
}

/// Known channels.
#[derive(Debug, Default)]
pub(super) struct Places(HashMap<String, Place>);

impl Places {
    /// Returns a channel, if it is known.
    pub(super) fn get(&self, channel: &str) -> Option<Place> {
        self.0.get(channel).cloned()
    }

    /// Adds a channel.
    pub(super) fn add(&mut self, channel: String, place: Place) {
        if self.0.len() >= MAX_PLACES {
            self.0.clear();
        }
        self.0.insert(channel, place);
    }

    /// Learns from an event of the gateway.
    pub(super) fn learn(&mut self, kind: &str, data: &Value) {
        match kind {
            "GUILD_CREATE" => {
                let guild = id(&data["id"]);
                self.add_all(&data["channels"], guild);
                self.add_all(&data["threads"], guild);
            }
            "THREAD_LIST_SYNC" => self.add_all(&data["threads"], id(&data["guild_id"])),
            "CHANNEL_CREATE" | "CHANNEL_UPDATE" | "THREAD_CREATE" | "THREAD_UPDATE" => {
                self.add_one(data, None);
            }
            "CHANNEL_DELETE" | "THREAD_DELETE" => {
                if let Some(channel) = id(&data["id"]) {
                    self.0.remove(channel);
                }
            }
            _ => {}
        }
    }

    fn add_all(&mut self, channels: &Value, guild: Option<&str>) {
        for channel in channels.as_array().into_iter().flatten() {
            self.add_one(channel, guild);
        }
    }

    fn add_one(&mut self, channel: &Value, guild: Option<&str>) {
        if let Some(id) = id(&channel["id"]) {
            self.add(id.to_owned(), Place::read(channel, guild));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn guild_event_describes_channels_and_threads() {
        let mut places = Places::default();
        let guild = json!({
            "id": "1000",
            "channels": [{"id": "20", "type": 0, "parent_id": "5"}, {"id": "x"}, 7],
            "threads": [{"id": "30", "type": 11, "parent_id": "20", "owner_id": "1"}],
        });
        places.learn("GUILD_CREATE", &guild);
        let channel = places.get("20").unwrap();
        assert_eq!((channel.parent, channel.has_threads), (None, true));
        let thread = places.get("30").unwrap();
        assert_eq!(thread.parent.as_deref(), Some("20"));
        assert_eq!(thread.guild.as_deref(), Some("1000"));
        places.learn("THREAD_DELETE", &json!({"id": "30"}));
        places.learn("GUILD_CREATE", &json!({"channels": {"id": 3}}));
        assert_eq!(places.get("30"), None);
    }
}

//! The sections `channels` and `channel_connections` of the configuration.

use std::collections::BTreeMap;

use harness::config::AppConfig;
use serde_json::{Map, Value};

use crate::platform::Settings;

/// Keys of `channels` that are not platforms.
const GENERAL: &[&str] = &[
    "langgraph_url",
    "gateway_url",
    "inbound_queue_maxsize",
    "max_concurrency",
    "shutdown_grace_period_seconds",
    "session",
];
/// Addresses that DeerFlow's channels call. Here channels run in the process of the server.
const INERT: &[&str] = &["langgraph_url", "gateway_url"];
/// Default of `max_exchanges_per_minute`: more are a sign of bots that answer each other.
const MAX_EXCHANGES_PER_MINUTE: usize = 10;

/// Default of `max_concurrency`.
const MAX_CONCURRENCY: usize = 256;

/// Handling of a message while its conversation is busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Busy {
    /// It waits for its turn.
    #[default]
    Queue,
    /// It cancels the active run.
    Interrupt,
    /// It is refused.
    Refuse,
}

/// Settings of runs at one level.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionLayer {
    /// Assistant.
    pub assistant_id: Option<String>,
    /// Configuration of runs.
    pub config: Map<String, Value>,
    /// Context of runs.
    pub context: Map<String, Value>,
    /// Layers of single users, by id.
    pub users: BTreeMap<String, SessionLayer>,
}

/// Rules of one channel that are the same for all platforms.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// Handling of messages to a busy conversation.
    pub busy: Busy,
    /// People who may use the bot, by id; empty permits all.
    pub allowed_users: Vec<String>,
    /// Workspaces or guilds in which the bot answers; empty permits all, also direct chats.
    pub allowed_guilds: Vec<String>,
    /// In groups, answers only messages that address the bot.
    pub mention_only: bool,
    /// Chats that are exempt from `mention_only`.
    pub allowed_channels: Vec<String>,
    /// Maximum number of exchanges per minute and conversation; 0 means no limit.
    pub max_exchanges_per_minute: usize,
    /// Maximum number of messages of all channels that the process handles at the same time.
    pub max_concurrency: usize,
    /// Layers of sessions: of all channels, then of this one.
    pub session: [SessionLayer; 2],
    /// Rules of connections.
    pub connections: ConnectionRules,
}

impl Default for Rules {
    /// Returns the rules of an empty entry.
    fn default() -> Self {
        channel(&Map::new(), &General::default(), ConnectionRules::default()).rules
    }
}

/// Entry of one platform in `channel_connections`, with the general keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConnectionRules {
    /// `true` if people can connect accounts of this platform.
    pub enabled: bool,
    /// `true` if only connected people may use the bot.
    pub require_bound_identity: bool,
    /// Name of the bot for links.
    pub bot_username: Option<String>,
}

/// One channel.
#[derive(Debug, Clone, PartialEq)]
pub struct ChannelEntry {
    /// `true` if the channel is switched on.
    pub enabled: bool,
    /// Settings of the adapter.
    pub settings: Settings,
    /// Rules.
    pub rules: Rules,
}

/// Values of `channels` for all channels.
#[derive(Debug, Clone, PartialEq)]
struct General {
    session: SessionLayer,
    max_concurrency: usize,
}

impl Default for General {
    fn default() -> Self {
        Self {
            session: SessionLayer::default(),
            max_concurrency: MAX_CONCURRENCY,
        }
    }
}

/// Both sections.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChannelsConfig {
    /// Channels by platform.
    pub channels: BTreeMap<String, ChannelEntry>,
    /// `channel_connections.enabled`.
    pub connections_enabled: bool,
    /// Rules of connections by platform; only enabled ones.
    pub connections: BTreeMap<String, ConnectionRules>,
    /// Values for all channels.
    general: General,
    /// Keys that are set and have no effect.
    pub inert: Vec<&'static str>,
}

impl ChannelsConfig {
    /// Reads both sections. Values of the wrong type count as absent.
    pub fn of(config: &AppConfig) -> Self {
        let empty = Map::new();
        let section = |name| {
            config
                .untyped(name)
                .and_then(Value::as_object)
                .unwrap_or(&empty)
        };
        Self::read(section("channels"), section("channel_connections"))
    }

    fn read(channels: &Map<String, Value>, connections: &Map<String, Value>) -> Self {
        let connections_enabled = flag(connections, "enabled", false);
        let require_bound_identity = flag(connections, "require_bound_identity", true);
        let of_provider = |name: &String, value: &Value| {
            let entry = value.as_object()?;
            let enabled = connections_enabled && flag(entry, "enabled", false);
            enabled.then(|| {
                let rules = ConnectionRules {
                    enabled,
                    require_bound_identity,
                    bot_username: text(entry, "bot_username"),
                };
                (name.clone(), rules)
            })
        };
        let rules: BTreeMap<String, ConnectionRules> = connections
            .iter()
            .filter_map(|(name, value)| of_provider(name, value))
            .collect();
        let max_concurrency = channels.get("max_concurrency").and_then(Value::as_u64);
        let general = General {
            session: layer(channels.get("session")),
            max_concurrency: max_concurrency
                .filter(|max| *max > 0)
                .map_or(MAX_CONCURRENCY, saturated),
        };
        let entries = channels
            .iter()
            .filter(|(name, _)| !GENERAL.contains(&name.as_str()))
            .filter_map(|(name, value)| {
                let entry = value.as_object()?;
                let of_connections = rules.get(name).cloned().unwrap_or_default();
                Some((name.clone(), channel(entry, &general, of_connections)))
            })
            .collect();
        Self {
            channels: entries,
            connections_enabled,
            connections: rules,
            general,
            inert: INERT
                .iter()
                .copied()
                .filter(|key| channels.contains_key(*key))
                .collect(),
        }
    }

    /// Returns the entry of a platform; one that the file does not name is switched off.
    pub fn entry(&self, provider: &str) -> ChannelEntry {
        let connections = || self.connections.get(provider).cloned().unwrap_or_default();
        self.channels
            .get(provider)
            .cloned()
            .unwrap_or_else(|| channel(&Map::new(), &self.general, connections()))
    }
}

fn channel(
    entry: &Map<String, Value>,
    general: &General,
    connections: ConnectionRules,
) -> ChannelEntry {
    let settings = Settings(entry.clone());
    let rules = Rules {
        busy: match settings.text("busy") {
            Some("interrupt") => Busy::Interrupt,
            Some("refuse") => Busy::Refuse,
            _ => Busy::Queue,
        },
        allowed_users: settings.ids("allowed_users"),
        allowed_guilds: settings.ids("allowed_guilds"),
        mention_only: settings.flag("mention_only", false),
        allowed_channels: settings.ids("allowed_channels"),
        max_exchanges_per_minute: entry
            .get("max_exchanges_per_minute")
            .and_then(Value::as_u64)
            .map_or(MAX_EXCHANGES_PER_MINUTE, saturated),
        max_concurrency: general.max_concurrency,
        session: [general.session.clone(), layer(entry.get("session"))],
        connections,
    };
    ChannelEntry {
        enabled: settings.flag("enabled", false),
        settings,
        rules,
    }
}

fn layer(value: Option<&Value>) -> SessionLayer {
    let Some(entry) = value.and_then(Value::as_object) else {
        return SessionLayer::default();
    };
    let map = |key: &str| {
        entry
            .get(key)
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default()
    };
    SessionLayer {
        assistant_id: text(entry, "assistant_id"),
        config: map("config"),
        context: map("context"),
        users: map("users")
            .iter()
            .map(|(id, value)| (id.clone(), layer(Some(value))))
            .collect(),
    }
}

fn saturated(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn flag(entry: &Map<String, Value>, key: &str, default: bool) -> bool {
    entry.get(key).and_then(Value::as_bool).unwrap_or(default)
}

fn text(entry: &Map<String, Value>, key: &str) -> Option<String> {
    let text = entry.get(key)?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;

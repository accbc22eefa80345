//! Channels of an agent: their names, order and reducers.

use std::sync::Arc;

use indexmap::IndexMap;

/// Maximum length of a channel's name, in bytes.
const MAX_NAME_LEN: usize = 64;
/// Part of every state that is no channel.
const MESSAGES: &str = "messages";

/// Reducer of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reducer {
    /// The newest write wins; two parallel writes in one step are an error.
    LastWrite,
    /// Null has no effect; a list is joined as an ordered union without duplicates.
    Union,
    /// Null has no effect; anything else replaces.
    ReplaceUnlessNull,
    /// Null has no effect; an empty map clears; otherwise maps are merged, new entries win.
    MergeMap,
    /// Null clears; otherwise maps are merged, new entries win, and a null entry removes its key.
    MergeKeys,
    /// Null and the same sandbox have no effect; another sandbox is an error.
    SameSandbox,
    /// Null has no effect; names of the same tool catalog are joined, those of another catalog
    /// replace the old ones.
    Promoted,
}

/// Channels of the lead agent except `messages`, with their reducers, in the order of `values`
/// frames.
pub const CHANNELS: &[(&str, Reducer)] = &[
    ("title", Reducer::LastWrite),
    ("thread_data", Reducer::LastWrite),
    ("uploaded_files", Reducer::LastWrite),
    ("artifacts", Reducer::Union),
    ("todos", Reducer::ReplaceUnlessNull),
    ("viewed_images", Reducer::MergeMap),
    ("sandbox", Reducer::SameSandbox),
    ("goal", Reducer::LastWrite),
    ("promoted", Reducer::Promoted),
    ("summary_text", Reducer::LastWrite),
    ("summary_cut", Reducer::LastWrite),
    ("background_tasks", Reducer::LastWrite),
    ("created_agent_name", Reducer::ReplaceUnlessNull),
];

/// Returns the reducer of a channel of the lead agent, if it has this channel.
#[doc(hidden)]
#[deprecated(note = "use `Channels::reducer` of the agent's channels")]
pub fn reducer_of(channel: &str) -> Option<Reducer> {
    lead_reducer(channel)
}

fn lead_reducer(channel: &str) -> Option<Reducer> {
    CHANNELS
        .iter()
        .find(|(name, _)| *name == channel)
        .map(|(_, reducer)| *reducer)
}

/// Reason why a channel cannot be defined.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidChannel {
    /// The name is not valid.
    #[error(
        "channel name {0:?} must match [A-Za-z][A-Za-z0-9_-]{{0,63}} and must not be \"messages\""
    )]
    Name(String),
    /// The name is taken.
    #[error("channel {0:?} is already defined")]
    Duplicate(String),
}

/// Channels of an agent except `messages`, which every agent has. Clones are cheap.
///
/// ```
/// use deerflow_core::state::{Channels, InvalidChannel, Reducer};
///
/// let channels = Channels::empty()
///     .with("ports", Reducer::MergeKeys)?
///     .with("result", Reducer::LastWrite)?;
/// assert_eq!(channels.reducer("ports"), Some(Reducer::MergeKeys));
/// assert_eq!(channels.reducer("title"), None);
///
/// let extended = Channels::lead().with("score", Reducer::LastWrite)?;
/// assert!(extended.contains("title"));
/// # Ok::<_, InvalidChannel>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Channels(Table);

/// Definitions by name.
#[derive(Debug, Clone, Default)]
enum Table {
    /// Those of [`CHANNELS`].
    #[default]
    Lead,
    Own(Arc<IndexMap<String, Reducer>>),
}

impl Channels {
    /// Returns the channels of the lead agent.
    pub const fn lead() -> Self {
        Self(Table::Lead)
    }

    /// Returns a definition without channels.
    pub fn empty() -> Self {
        Self(Table::Own(Arc::default()))
    }

    /// Adds a channel after the others. Fails if the name is not valid or is taken.
    pub fn with(self, name: impl Into<String>, reducer: Reducer) -> Result<Self, InvalidChannel> {
        let name = name.into();
        if !is_name(&name) {
            return Err(InvalidChannel::Name(name.chars().take(80).collect()));
        }
        if self.contains(&name) {
            return Err(InvalidChannel::Duplicate(name));
        }
        let mut own = match self.0 {
            Table::Own(own) => Arc::unwrap_or_clone(own),
            Table::Lead => CHANNELS
                .iter()
                .map(|(name, reducer)| ((*name).to_owned(), *reducer))
                .collect(),
        };
        own.insert(name, reducer);
        Ok(Self(Table::Own(Arc::new(own))))
    }

    /// Returns the reducer of a channel, if the agent has this channel.
    pub fn reducer(&self, channel: &str) -> Option<Reducer> {
        match &self.0 {
            Table::Lead => lead_reducer(channel),
            Table::Own(own) => own.get(channel).copied(),
        }
    }

    /// Reports whether the agent has this channel.
    pub fn contains(&self, channel: &str) -> bool {
        self.reducer(channel).is_some()
    }

    /// Returns the channels in order.
    pub fn iter(&self) -> Box<dyn Iterator<Item = (&str, Reducer)> + '_> {
        match &self.0 {
            Table::Lead => Box::new(CHANNELS.iter().copied()),
            Table::Own(own) => Box::new(own.iter().map(|(name, reducer)| (&**name, *reducer))),
        }
    }

    /// Returns those keys of an input or update that are neither `messages` nor channels.
    pub fn unknown<'a>(&self, keys: impl IntoIterator<Item = &'a String>) -> Vec<String> {
        keys.into_iter()
            .filter(|key| *key != MESSAGES && !self.contains(key))
            .cloned()
            .collect()
    }
}

/// Two definitions are equal if they have the same channels in the same order.
impl PartialEq for Channels {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Channels {}

/// Returns the position of a channel in serialized states: first the lead agent's channels in their
/// order, then the others by name. The order is the same whether or not the agent is known.
pub(super) fn wire_order(channel: &str) -> (usize, &str) {
    match CHANNELS.iter().position(|(name, _)| *name == channel) {
        Some(at) => (at, ""),
        None => (CHANNELS.len(), channel),
    }
}

/// Names that begin with an underscore are reserved, such as `__interrupt__`.
fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    text != MESSAGES
        && text.len() <= MAX_NAME_LEN
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channel_definition_is_checked() {
        let long = "a".repeat(MAX_NAME_LEN + 1);
        for name in [
            "",
            "messages",
            "__interrupt__",
            "a b",
            "a\"",
            "1a",
            "ä",
            &*long,
        ] {
            assert!(
                matches!(
                    Channels::empty().with(name, Reducer::LastWrite),
                    Err(InvalidChannel::Name(_))
                ),
                "{name}"
            );
        }
        assert_eq!(
            Channels::lead().with("title", Reducer::Union),
            Err(InvalidChannel::Duplicate("title".to_owned()))
        );
    }

    #[test]
    fn own_channels_follow_those_of_the_lead() {
        let channels = Channels::lead().with("score", Reducer::Union).unwrap();
        assert_eq!(channels.iter().last(), Some(("score", Reducer::Union)));
        assert_eq!(channels.iter().count(), CHANNELS.len() + 1);
        assert_eq!(Channels::lead().reducer("score"), None);
        assert_ne!(channels, Channels::lead());
        assert_eq!(
            channels.unknown(&["messages", "score", "title", "x"].map(str::to_owned)),
            ["x"]
        );
    }
}

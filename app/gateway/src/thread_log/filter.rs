//! Selection of events: channels, namespaces, and a position.

use serde_json::{Map, Value};

use super::event::{Channel, LogEvent};

/// Maximum number of channels, and of namespaces, in a selection.
const MAX_ENTRIES: usize = 256;
/// Maximum size of the texts of a selection, in bytes. A socket holds many selections.
const MAX_TEXT: usize = 16 * 1024;
/// Size of a text in memory in addition to its bytes.
const TEXT_OVERHEAD: usize = size_of::<String>();

/// Selection that a reader requests.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EventSelection {
    channels: Vec<Channel>,
    /// Names of `custom` payloads that are selected without the whole channel.
    custom_names: Vec<String>,
    /// Prefixes of namespaces; all if empty.
    namespaces: Vec<Vec<String>>,
    /// Maximum number of levels below the prefix.
    depth: Option<u64>,
    /// Position after which events are selected.
    pub(crate) since: Option<u64>,
}

impl EventSelection {
    /// Reads a selection.
    ///
    /// # Errors
    /// A text that names the invalid field.
    pub(crate) fn read(fields: &Map<String, Value>) -> Result<Self, String> {
        let (channels, custom_names) = read_channels(fields.get("channels"))?;
        let namespaces = read_namespaces(fields.get("namespaces"))?;
        for (field, size) in [
            ("channels", text_size(&custom_names)),
            (
                "namespaces",
                namespaces.iter().map(|texts| text_size(texts)).sum(),
            ),
        ] {
            if size > MAX_TEXT {
                return Err(format!("{field} has more than {MAX_TEXT} bytes of text"));
            }
        }
        Ok(Self {
            channels,
            custom_names,
            namespaces,
            depth: read_depth(fields.get("depth"))?,
            since: fields.get("since").and_then(Value::as_u64),
        })
    }

    /// Reports whether the selection contains an event, at any position.
    pub(crate) fn contains(&self, event: &LogEvent) -> bool {
        self.has_channel(event)
            && (self.namespaces.is_empty()
                || self
                    .namespaces
                    .iter()
                    .any(|prefix| self.is_below(prefix, &event.namespace)))
    }

    fn has_channel(&self, event: &LogEvent) -> bool {
        self.channels.contains(&event.channel)
            || (event.channel == Channel::Custom
                && event
                    .name
                    .as_ref()
                    .is_some_and(|name| self.custom_names.contains(name)))
    }

    fn is_below(&self, prefix: &[String], namespace: &[String]) -> bool {
        let Some(below) = namespace.len().checked_sub(prefix.len()) else {
            return false;
        };
        let is_within_depth = self.depth.is_none_or(|depth| below as u64 <= depth);
        is_within_depth
            && prefix
                .iter()
                .zip(namespace)
                .all(|(wanted, segment)| is_segment(wanted, segment))
    }
}

fn text_size(texts: &[String]) -> usize {
    texts.iter().map(|text| text.len() + TEXT_OVERHEAD).sum()
}

/// Reports whether a segment of a filter selects a segment of a namespace. Without a suffix it
/// selects all calls of its node.
fn is_segment(wanted: &str, segment: &str) -> bool {
    wanted == segment
        || (!wanted.contains(':')
            && segment
                .split_once(':')
                .is_some_and(|(node, _)| node == wanted))
}

fn read_channels(value: Option<&Value>) -> Result<(Vec<Channel>, Vec<String>), String> {
    let listed = value
        .and_then(Value::as_array)
        .filter(|list| !list.is_empty());
    let Some(listed) = listed else {
        return Err("channels must be a non-empty list of channel names".to_owned());
    };
    if listed.len() > MAX_ENTRIES {
        return Err(format!("channels has more than {MAX_ENTRIES} entries"));
    }
    let (mut channels, mut custom_names) = (Vec::new(), Vec::new());
    for entry in listed {
        let Some(text) = entry.as_str() else {
            return Err("channels must contain only texts".to_owned());
        };
        let known = Channel::ALL
            .into_iter()
            .find(|channel| channel.as_str() == text);
        match (known, text.strip_prefix("custom:")) {
            (Some(channel), _) if channels.contains(&channel) => {}
            (Some(channel), _) => channels.push(channel),
            (None, Some(name)) if !name.is_empty() => custom_names.push(name.to_owned()),
            _ => {
                let shown: String = text.chars().take(80).collect();
                return Err(format!("channels has the unknown entry {shown:?}"));
            }
        }
    }
    Ok((channels, custom_names))
}

fn read_namespaces(value: Option<&Value>) -> Result<Vec<Vec<String>>, String> {
    let refused = || "namespaces must be a list of lists of texts".to_owned();
    let prefixes = match value {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(prefixes)) => prefixes,
        Some(_) => return Err(refused()),
    };
    if prefixes.len() > MAX_ENTRIES {
        return Err(format!("namespaces has more than {MAX_ENTRIES} entries"));
    }
    prefixes
        .iter()
        .map(|prefix| read_namespace(prefix).ok_or_else(refused))
        .collect()
}

/// Reads a namespace; `None` if it is not a list of texts.
pub(crate) fn read_namespace(value: &Value) -> Option<Vec<String>> {
    let segments = value.as_array()?.iter();
    segments
        .map(|segment| segment.as_str().map(str::to_owned))
        .collect()
}

fn read_depth(value: Option<&Value>) -> Result<Option<u64>, String> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64() {
            Some(depth) => Ok(Some(depth)),
            None => Err("depth must be a non-negative integer".to_owned()),
        },
    }
}

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;

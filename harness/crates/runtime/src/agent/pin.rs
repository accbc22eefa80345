//! Version of an assistant on which a run executes.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Version of an assistant's content. A run executes the version that was current when the run was
/// accepted, also on another node and after an interrupt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssistantPin {
    /// Number of the version.
    pub version: u64,
    /// Hash of the version's content.
    pub content_hash: String,
}

/// PinEntry of a checkpoint's metadata.
#[derive(Serialize, Deserialize)]
struct PinEntry {
    assistant: String,
    #[serde(flatten)]
    pin: AssistantPin,
}

impl AssistantPin {
    /// Key of a checkpoint's metadata with the version on which the checkpoint's run executed.
    /// Metadata of clients must not have it.
    pub const METADATA_KEY: &str = "assistant_pin";

    /// Returns the pin in the metadata of a checkpoint that a run of `assistant` wrote. `None` if
    /// the run was of another assistant, or of an assistant without versions.
    pub fn in_metadata(metadata: &Map<String, Value>, assistant: &str) -> Option<Self> {
        let entry = PinEntry::deserialize(metadata.get(Self::METADATA_KEY)?).ok()?;
        Some(entry.pin).filter(|_| entry.assistant == assistant)
    }

    /// Adds the pin of a run of `assistant` to the metadata of a checkpoint.
    pub(crate) fn add_to(&self, metadata: &mut Map<String, Value>, assistant: &str) {
        let entry = PinEntry {
            assistant: assistant.to_owned(),
            pin: self.clone(),
        };
        metadata.insert(Self::METADATA_KEY.to_owned(), json!(entry));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pin_in_metadata_belongs_to_one_assistant() {
        let pin = AssistantPin {
            version: 7,
            content_hash: "abc".to_owned(),
        };
        let mut metadata = Map::new();
        pin.add_to(&mut metadata, "flow-a");
        assert_eq!(
            AssistantPin::in_metadata(&metadata, "flow-a"),
            Some(pin.clone())
        );
        assert_eq!(AssistantPin::in_metadata(&metadata, "flow-b"), None);
        for forged in [json!(1), json!({ "version": -1 }), json!(null)] {
            metadata.insert(AssistantPin::METADATA_KEY.to_owned(), forged);
            assert_eq!(AssistantPin::in_metadata(&metadata, "flow-a"), None);
        }
    }
}

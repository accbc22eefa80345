//! The models of an installation, by entry name: each built when it is first asked for, then shared.

use std::sync::{Arc, OnceLock};

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::factory::{self, Parts};
use super::fallback::WithFallbacks;
use super::{ChatModel, ModelEntry, ModelError, ModelErrorKind};
use crate::clock::Clock;

/// What anybody may know of an entry: never a key, never an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelFacts {
    /// What runs ask for.
    pub name: String,
    /// The model's name at its provider.
    pub model: String,
    /// The name shown to people.
    pub display_name: Option<String>,
    /// A sentence shown to people.
    pub description: Option<String>,
    /// Whether it can think.
    pub supports_thinking: bool,
    /// Whether it takes a `reasoning_effort`.
    pub supports_reasoning_effort: bool,
}

/// All model entries. The first is the default.
#[derive(Debug)]
pub struct ModelCatalog {
    parts: Parts,
    slots: IndexMap<String, Slot>,
}

#[derive(Debug)]
struct Slot {
    entry: ModelEntry,
    built: OnceLock<Result<Arc<dyn ChatModel>, ModelError>>,
    /// The model and those behind it.
    whole: OnceLock<Result<Arc<dyn ChatModel>, ModelError>>,
}

impl Slot {
    fn of(entry: ModelEntry) -> Self {
        Self {
            entry,
            built: OnceLock::new(),
            whole: OnceLock::new(),
        }
    }
}

impl ModelCatalog {
    /// The catalog of `entries`. Of two entries with one name the first counts.
    pub fn new(entries: impl IntoIterator<Item = ModelEntry>, clock: Arc<dyn Clock>) -> Self {
        let mut slots = IndexMap::new();
        for entry in entries {
            slots
                .entry(entry.name.clone())
                .or_insert_with(|| Slot::of(entry));
        }
        Self {
            parts: Parts::new(clock),
            slots,
        }
    }

    /// Adds a model that is built already, under the name it gives itself. Of an entry of that name it keeps what the entry says,
    /// such as its window.
    pub fn with_model(mut self, model: Arc<dyn ChatModel>) -> Self {
        let info = model.info();
        let said = self.slots.get(&info.name).map(|slot| slot.entry.clone());
        let mut entry =
            said.unwrap_or_else(|| ModelEntry::new(&info.name, &info.provider, &info.model));
        entry.supports_vision = info.supports_vision;
        self.slots.insert(
            entry.name.clone(),
            Slot {
                built: OnceLock::from(Ok(model)),
                ..Slot::of(entry)
            },
        );
        self
    }

    /// The same, where an entry that does not say it takes so many calls at once; 0 is any number.
    #[must_use]
    pub fn with_usual_places(mut self, most: usize) -> Self {
        for slot in self.slots.values_mut() {
            slot.entry.max_concurrent_calls.get_or_insert(most);
        }
        self
    }

    /// The same, where an answer of an entry that does not say it holds at most so many bytes; 0 is no limit.
    #[must_use]
    pub fn with_longest_answer(mut self, most: usize) -> Self {
        for slot in self.slots.values_mut() {
            slot.entry.max_answer_bytes.get_or_insert(most);
        }
        self
    }

    /// The model `name`, built at the first call. The error says what is wrong with the name or the entry.
    pub fn get(&self, name: &str) -> Result<Arc<dyn ChatModel>, ModelError> {
        let slot = self.slots.get(name).ok_or_else(|| {
            let known = self
                .slots
                .keys()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(", ");
            config_error(
                name,
                format!("there is no such entry under `models`; there are: {known}"),
            )
        })?;
        slot.whole.get_or_init(|| self.build(slot)).clone()
    }

    /// The model of `slot`, in front of its fallbacks. One of those that cannot be built is left out: the model itself can.
    fn build(&self, slot: &Slot) -> Result<Arc<dyn ChatModel>, ModelError> {
        let model = self.build_alone(slot)?;
        let others = slot
            .entry
            .fallback_models
            .iter()
            .filter(|name| **name != slot.entry.name);
        let mut fallbacks = Vec::new();
        for name in others {
            let other = self.slots.get(name).ok_or_else(|| {
                config_error(
                    &slot.entry.name,
                    format!(
                        "its `fallback_models` name `{name}`, which is no entry under `models`"
                    ),
                )
            })?;
            match self.build_alone(other) {
                Ok(other) => fallbacks.push(other),
                Err(error) => {
                    tracing::warn!(model = slot.entry.name, %error, "a fallback cannot be used")
                }
            }
        }
        if fallbacks.is_empty() {
            Ok(model)
        } else {
            Ok(Arc::new(WithFallbacks { model, fallbacks }))
        }
    }

    fn build_alone(&self, slot: &Slot) -> Result<Arc<dyn ChatModel>, ModelError> {
        let build = || {
            factory::build(&slot.entry, &self.parts)
                .map_err(|message| config_error(&slot.entry.name, message))
        };
        slot.built.get_or_init(build).clone()
    }

    /// The model `name`, or the default when none is named.
    pub fn get_or_default(&self, name: Option<&str>) -> Result<Arc<dyn ChatModel>, ModelError> {
        let first = || self.slots.keys().next().map(String::as_str);
        match name.filter(|name| !name.is_empty()).or_else(first) {
            Some(name) => self.get(name),
            None => Err(config_error(
                "",
                "no entry under `models`; `use: scripted` needs no account".to_owned(),
            )),
        }
    }

    /// The entry `name`.
    pub fn entry(&self, name: &str) -> Option<&ModelEntry> {
        self.slots.get(name).map(|slot| &slot.entry)
    }

    /// Public facts of every entry, in order.
    pub fn facts(&self) -> Vec<ModelFacts> {
        self.slots
            .values()
            .map(|slot| ModelFacts::from(&slot.entry))
            .collect()
    }
}

impl From<&ModelEntry> for ModelFacts {
    fn from(entry: &ModelEntry) -> Self {
        Self {
            name: entry.name.clone(),
            model: entry.model.clone(),
            display_name: entry.display_name.clone(),
            description: entry.description.clone(),
            supports_thinking: entry.supports_thinking,
            supports_reasoning_effort: entry.supports_reasoning_effort,
        }
    }
}

fn config_error(model: &str, message: String) -> ModelError {
    ModelError {
        model: model.to_owned(),
        kind: ModelErrorKind::Config,
        message,
        status: None,
        retry_after: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::models::ProviderKind;

    fn catalog(entries: Vec<ModelEntry>) -> ModelCatalog {
        ModelCatalog::new(entries, Arc::new(SystemClock))
    }

    #[test]
    fn the_first_entry_is_the_default_and_models_are_shared() {
        let catalog = catalog(vec![
            ModelEntry::new("a", "scripted", "s"),
            ModelEntry::new("b", "scripted", "s"),
        ]);
        let model = catalog.get_or_default(None).unwrap();
        assert_eq!(model.info().name, "a");
        assert!(Arc::ptr_eq(&model, &catalog.get("a").unwrap()));
        assert_eq!(catalog.get_or_default(Some("b")).unwrap().info().name, "b");
        assert_eq!(catalog.facts().len(), 2);
    }

    #[test]
    fn what_cannot_be_built_names_the_entry_and_the_way_out() {
        let catalog = catalog(vec![
            ModelEntry::new("c", "scripted_by_hand", "claude"),
            ModelEntry::new("t", "langchain_typo:ChatOllana", "x"),
        ]);
        for (name, hints) in [
            (
                "c",
                &[
                    "\"c\"",
                    "scripted_by_hand",
                    "nearest: ",
                    "supported: scripted",
                ][..],
            ),
            ("t", &["\"t\"", "ChatOllana", "ollama"]),
            ("zzz", &["zzz", "c, t"]),
        ] {
            let error = catalog.get(name).unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::Config);
            for hint in hints {
                assert!(error.to_string().contains(hint), "{hint}: {error}");
            }
        }
        assert!(
            super::ModelCatalog::new([], Arc::new(SystemClock))
                .get_or_default(None)
                .is_err()
        );
    }

    #[test]
    fn fallbacks_stand_behind_their_model_and_must_be_entries() {
        let with = |fallbacks: &[&str]| {
            let fallback_models = fallbacks.iter().map(|name| (*name).to_owned()).collect();
            let first = ModelEntry {
                fallback_models,
                ..ModelEntry::new("a", "scripted", "s")
            };
            catalog(vec![
                first,
                ModelEntry::new("b", "scripted", "s"),
                ModelEntry::new("broken", "nothing", "s"),
            ])
            .get("a")
        };
        let names = |model: Arc<dyn ChatModel>| {
            model
                .fallbacks()
                .iter()
                .map(|other| other.info().name.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(with(&["a", "broken", "b"]).unwrap()), ["b"]);
        assert!(with(&[]).unwrap().fallbacks().is_empty());
        assert!(with(&["typo"]).unwrap_err().message.contains("`typo`"));
    }

    #[cfg(feature = "providers")]
    #[test]
    fn every_kind_is_built_and_one_without_a_key_says_where_keys_are_kept() {
        for kind in ProviderKind::all().map(ProviderKind::as_str) {
            let mut entry = ModelEntry::new("m", kind, "x");
            entry.extra.insert(
                "base_url".to_owned(),
                serde_json::json!("http://127.0.0.1:1/v1"),
            );
            let model = catalog(vec![entry]).get("m").unwrap();
            assert_eq!(
                (model.info().name.as_str(), model.info().provider.as_str()),
                ("m", kind)
            );
        }
        for (kind, variable) in [
            ("openai", "$OPENAI_API_KEY"),
            ("anthropic", "$ANTHROPIC_API_KEY"),
            ("codex", "codex login"),
        ] {
            assert!(
                catalog(vec![ModelEntry::new("m", kind, "x")])
                    .get("m")
                    .unwrap_err()
                    .message
                    .contains(variable),
                "{kind}"
            );
        }
        assert!(
            catalog(vec![ModelEntry::new("m", "ollama", "x")])
                .get("m")
                .is_ok(),
            "its own machine wants no key"
        );
    }
}

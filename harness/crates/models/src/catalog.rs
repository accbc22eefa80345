//! Catalog of the configured models, by entry name. Each model is built on first use and then
//! shared.

use std::sync::{Arc, OnceLock};

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::dependencies::ModelDependencies;
use super::factory;
use super::fallback::WithFallbacks;
use super::{ChatModel, ModelEntry, ModelError, ModelErrorKind};
use deerflow_core::clock::Clock;
use deerflow_core::messages::UsageMetadata;

/// Public properties of a model entry. Contains no key and no address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelFacts {
    /// Name of the entry, by which runs select the model.
    pub name: String,
    /// The model's name at its provider.
    pub model: String,
    /// Name for display.
    pub display_name: Option<String>,
    /// Description for display.
    pub description: Option<String>,
    /// `true` if the model supports thinking.
    pub supports_thinking: bool,
    /// `true` if the model supports `reasoning_effort`.
    pub supports_reasoning_effort: bool,
}

/// All model entries. The first is the default.
#[derive(Debug)]
pub struct ModelCatalog {
    dependencies: ModelDependencies,
    slots: IndexMap<String, Slot>,
}

#[derive(Debug)]
struct Slot {
    entry: ModelEntry,
    built: OnceLock<Result<Arc<dyn ChatModel>, ModelError>>,
    /// The model with its fallbacks.
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
    /// Creates the catalog of `entries`. If several entries have one name, the first is used.
    pub fn new(entries: impl IntoIterator<Item = ModelEntry>, clock: Arc<dyn Clock>) -> Self {
        let mut slots = IndexMap::new();
        for entry in entries {
            slots
                .entry(entry.name.clone())
                .or_insert_with(|| Slot::of(entry));
        }
        Self {
            dependencies: ModelDependencies::new(clock),
            slots,
        }
    }

    /// Adds a built model under the name in its `info`. An existing entry with this name retains
    /// its settings, such as its context window.
    pub fn with_model(mut self, model: Arc<dyn ChatModel>) -> Self {
        let info = model.info();
        let entry_config = self.slots.get(&info.name).map(|slot| slot.entry.clone());
        let mut entry = entry_config
            .unwrap_or_else(|| ModelEntry::new(&info.name, &info.provider, &info.model));
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

    /// Sets the maximum number of concurrent calls for entries that do not set it. 0 means no
    /// limit.
    #[must_use]
    pub fn with_default_concurrency(mut self, max: usize) -> Self {
        for slot in self.slots.values_mut() {
            slot.entry.max_concurrent_calls.get_or_insert(max);
        }
        self
    }

    #[doc(hidden)]
    #[deprecated(note = "use `with_default_concurrency`")]
    #[must_use]
    pub fn with_usual_places(self, most: usize) -> Self {
        self.with_default_concurrency(most)
    }

    /// Sets the maximum size of an answer, in bytes, for entries that do not set it. 0 means no
    /// limit.
    #[must_use]
    pub fn with_default_answer_limit(mut self, max: usize) -> Self {
        for slot in self.slots.values_mut() {
            slot.entry.max_answer_bytes.get_or_insert(max);
        }
        self
    }

    #[doc(hidden)]
    #[deprecated(note = "use `with_default_answer_limit`")]
    #[must_use]
    pub fn with_longest_answer(self, most: usize) -> Self {
        self.with_default_answer_limit(most)
    }

    /// Returns the model `name`, built on first use. The error states what is wrong with the name
    /// or the entry.
    pub fn get(&self, name: &str) -> Result<Arc<dyn ChatModel>, ModelError> {
        let slot = self.slots.get(name).ok_or_else(|| {
            let available = self
                .slots
                .keys()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(", ");
            config_error(
                name,
                format!("no such entry under `models`; available: {available}"),
            )
        })?;
        slot.whole.get_or_init(|| self.build(slot)).clone()
    }

    /// Builds the model of `slot` with its fallbacks. A fallback that cannot be built is skipped,
    /// because the model itself works.
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
                        "`fallback_models` names `{name}`, which is not an entry under `models`"
                    ),
                )
            })?;
            match self.build_alone(other) {
                Ok(other) => fallbacks.push(other),
                Err(error) => {
                    tracing::warn!(model = slot.entry.name, %error, "cannot build a fallback model")
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
            factory::build(&slot.entry, &self.dependencies)
                .map_err(|message| config_error(&slot.entry.name, message))
        };
        slot.built.get_or_init(build).clone()
    }

    /// Returns the model `name`, or the default if `name` is `None` or empty.
    pub fn get_or_default(&self, name: Option<&str>) -> Result<Arc<dyn ChatModel>, ModelError> {
        let first = || self.slots.keys().next().map(String::as_str);
        match name.filter(|name| !name.is_empty()).or_else(first) {
            Some(name) => self.get(name),
            None => Err(config_error(
                "",
                "no model is configured: add an entry under `models` (`use: scripted` needs no account)".to_owned(),
            )),
        }
    }

    /// Returns the entry `name`.
    pub fn entry(&self, name: &str) -> Option<&ModelEntry> {
        self.slots.get(name).map(|slot| &slot.entry)
    }

    /// Returns the cost of a call of the entry `name` in US dollars. `None` if the entry has no
    /// price in this currency.
    pub fn cost_usd(&self, name: &str, usage: &UsageMetadata) -> Option<f64> {
        let pricing = self.entry(name)?.pricing.as_ref()?;
        let is_usd = pricing.currency.eq_ignore_ascii_case("USD");
        is_usd.then(|| pricing.cost(usage))
    }

    /// Returns the public properties of every entry, in order.
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
#[path = "catalog_tests.rs"]
mod tests;

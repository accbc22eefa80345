//! Auxiliary model features (compaction, suggestions, input polishing) of the current
//! configuration.

use deerflow_gateway::ports::AssistView;
use harness::agents::assist::{Polisher, Suggester};
use harness::middlewares::summarization::Compactor;

use crate::agents::configured::ConfiguredAgents;

impl AssistView for ConfiguredAgents {
    fn compactor(&self, model: Option<&str>) -> Option<Compactor> {
        let now = self.assembled();
        let section = &now.config.summarization;
        section
            .enabled
            .then(|| Compactor::new(section, now.models.clone(), model))
    }

    fn ruler(&self, model: Option<&str>) -> Compactor {
        let now = self.assembled();
        Compactor::new(&now.config.summarization, now.models.clone(), model)
    }

    fn suggester(&self) -> Option<Suggester> {
        let now = self.assembled();
        let section = &now.config.suggestions;
        let limit = usize::try_from(section.max_suggestions).unwrap_or(usize::MAX);
        section.enabled.then(|| Suggester {
            models: now.models.clone(),
            most: limit,
        })
    }

    fn polisher(&self) -> Option<Polisher> {
        let now = self.assembled();
        let section = &now.config.input_polish;
        let max_chars = usize::try_from(section.max_chars).unwrap_or(usize::MAX);
        section.enabled.then(|| Polisher {
            models: now.models.clone(),
            model: section.model_name.clone(),
            max_chars,
        })
    }
}

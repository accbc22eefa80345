//! The configuration as clients may see it.

use std::sync::Arc;

use chrono::TimeDelta;
use deerflow_gateway::ports::{CatalogView, FeatureView, MemoryView, SuggestionsView, UploadLimits};
use harness::config::MemoryMode;
use harness::documents::DocumentReader;
use harness::memory::MemoryRules;
use harness::models::{ModelEntry, ModelFacts, Pricing};
use harness::runtime::runs::{Expiry, ThreadTtl};
use serde_json::json;

use crate::config::ConfigHandle;

/// Answers from the configuration in force.
#[derive(Debug)]
pub(super) struct ConfigCatalog(pub(super) ConfigHandle, pub(super) Option<Arc<dyn DocumentReader>>);

impl CatalogView for ConfigCatalog {
    fn models(&self) -> Vec<ModelFacts> {
        self.0.current().models.iter().map(|model| ModelFacts::from(&ModelEntry::from(model))).collect()
    }

    fn features(&self) -> FeatureView {
        let config = self.0.current();
        // What this build does not have is off, whatever the file says.
        FeatureView { token_usage: config.token_usage.enabled, agents_api: config.agents_api.enabled, ..FeatureView::default() }
    }

    fn suggestions(&self) -> SuggestionsView {
        let config = self.0.current();
        let max_suggestions = u8::try_from(config.suggestions.max_suggestions).unwrap_or(5);
        SuggestionsView { enabled: config.suggestions.enabled, max_suggestions }
    }

    fn memory(&self) -> MemoryView {
        let config = self.0.current();
        let section = &config.memory;
        let rules = MemoryRules::from(section);
        let figures = json!({
            "debounce_seconds": rules.debounce.as_secs_f64(),
            "model_name": rules.model,
            "max_facts": rules.max_facts,
            "fact_confidence_threshold": rules.least_confidence,
            "max_injection_tokens": rules.max_injection_tokens,
        });
        MemoryView {
            enabled: section.enabled,
            mode: if section.mode == MemoryMode::Tool { "tool" } else { "middleware" },
            injection_enabled: section.injection_enabled,
            shutdown_flush_timeout_seconds: section.shutdown_flush_timeout_seconds,
            manager_class: section.manager_class.clone(),
            backend_config: figures.as_object().cloned().unwrap_or_default(),
        }
    }

    fn thread_ttl(&self) -> Option<ThreadTtl> {
        let config = self.0.current();
        let ttl = &config.checkpointer.ttl;
        let after = TimeDelta::try_minutes(i64::try_from(ttl.default_ttl?).ok()?)?;
        let named = Expiry::WORDS.iter().find(|(word, _)| *word == ttl.strategy);
        Some(ThreadTtl { after, then: named.map(|(_, expiry)| *expiry).unwrap_or_default() })
    }

    fn pricing(&self, model: &str) -> Option<Pricing> {
        let config = self.0.current();
        config.models.iter().find(|entry| entry.name == model)?.pricing.as_ref().map(Pricing::from)
    }

    fn uploads(&self) -> UploadLimits {
        let config = self.0.current();
        UploadLimits {
            max_files: u32::try_from(config.uploads.max_files).unwrap_or(u32::MAX),
            max_file_size: config.uploads.max_file_size,
            max_total_size: config.uploads.max_total_size,
        }
    }

    fn documents(&self) -> Option<Arc<dyn DocumentReader>> {
        self.1.clone().filter(|_| self.0.current().uploads.auto_convert_documents)
    }
}

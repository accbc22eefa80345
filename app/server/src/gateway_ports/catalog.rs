//! View of the configuration for clients.

use std::sync::Arc;

use chrono::TimeDelta;
use deerflow_domain::flows::FlowQuota;
use deerflow_gateway::ports::{CatalogView, FeatureView, SuggestionsView};
use harness::config::LimitsConfig;
use harness::documents::DocumentReader;
use harness::models::{ModelFacts, ModelList, Pricing};
use harness::runtime::runs::{Expiry, ThreadTtl};
use harness::uploads::UploadLimits;
use harness::user_memory::MemoryView;

use crate::config::ConfigHandle;

/// Answers from the current configuration.
#[derive(Debug)]
pub(crate) struct ConfigCatalog(
    pub(crate) ConfigHandle,
    pub(crate) Option<Arc<dyn DocumentReader>>,
);

impl CatalogView for ConfigCatalog {
    fn models(&self) -> Vec<ModelFacts> {
        ModelList::from(&*self.0.current()).models
    }

    fn features(&self) -> FeatureView {
        let config = self.0.current();
        // Features that this build lacks are reported as disabled, whatever the file says.
        FeatureView {
            token_usage: config.token_usage.enabled,
            agents_api: config.agents_api.enabled,
            ..FeatureView::default()
        }
    }

    fn suggestions(&self) -> SuggestionsView {
        let config = self.0.current();
        let max_suggestions = u8::try_from(config.suggestions.max_suggestions).unwrap_or(5);
        SuggestionsView {
            enabled: config.suggestions.enabled,
            max_suggestions,
        }
    }

    fn memory(&self) -> MemoryView {
        MemoryView::from(&self.0.current().memory)
    }

    fn thread_ttl(&self) -> Option<ThreadTtl> {
        let config = self.0.current();
        let ttl = &config.checkpointer.ttl;
        let after = TimeDelta::try_minutes(i64::try_from(ttl.default_ttl?).ok()?)?;
        let named = Expiry::WORDS.iter().find(|(word, _)| *word == ttl.strategy);
        Some(ThreadTtl {
            after,
            then: named.map(|(_, expiry)| *expiry).unwrap_or_default(),
        })
    }

    fn pricing(&self, model: &str) -> Option<Pricing> {
        let config = self.0.current();
        config
            .models
            .iter()
            .find(|entry| entry.name == model)?
            .pricing
            .as_ref()
            .map(Pricing::from)
    }

    fn flow_quota(&self) -> FlowQuota {
        let flows = &self.0.current().flows;
        FlowQuota {
            flows: flows.max_flows_per_user,
            versions: flows.max_versions,
        }
    }

    fn field_limits(&self) -> LimitsConfig {
        self.0.current().limits
    }

    fn uploads(&self) -> UploadLimits {
        UploadLimits::from(&self.0.current().uploads)
    }

    fn documents(&self) -> Option<Arc<dyn DocumentReader>> {
        self.1
            .clone()
            .filter(|_| self.0.current().uploads.auto_convert_documents)
    }
}

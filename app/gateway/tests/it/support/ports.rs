//! Ports of the gateway under test.

use std::sync::Arc;

use async_trait::async_trait;
use deerflow_domain::flows::FlowQuota;
use deerflow_gateway::ports::{
    AssistView, CatalogView, FeatureView, MetricsView, SuggestionsView, ThreadFilesError,
    ThreadFilesPort,
};
use harness::agents::assist::{Polisher, Suggester};
use harness::clock::SystemClock;
use harness::config::{AppConfig, SummarizationConfig};
use harness::documents::DocumentReader;
use harness::ids::ThreadId;
use harness::middlewares::summarization::Compactor;
use harness::models::{
    AuxiliaryModels, ModelCatalog, ModelEntry, ModelFacts, ModelList, Pricing, RetryPolicy,
};
use harness::sandbox::{FileHome, FileLimits, OrphanedThread, ThreadFiles};
use harness::uploads::UploadLimits;
use harness::user_memory::MemoryView;
use parking_lot::Mutex;
use serde_json::json;

/// The configuration, as far as tests need it.
pub(crate) fn config() -> AppConfig {
    let config = json!({
        "models": [{ "name": "fake", "use": "scripted", "model": "fake-1", "display_name": "Fake" }],
        "uploads": { "auto_convert_documents": true },
    });
    serde_json::from_value(config).expect("a configuration")
}

/// Settings and models, as far as routes read them.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    pub(super) agents_api: bool,
    pub(super) documents: Option<Arc<dyn DocumentReader>>,
}

impl CatalogView for Catalog {
    fn models(&self) -> Vec<ModelFacts> {
        ModelList::from(&config()).models
    }

    fn features(&self) -> FeatureView {
        FeatureView {
            token_usage: true,
            agents_api: self.agents_api,
            ..FeatureView::default()
        }
    }

    fn suggestions(&self) -> SuggestionsView {
        SuggestionsView {
            enabled: true,
            max_suggestions: 3,
        }
    }

    fn memory(&self) -> MemoryView {
        MemoryView::from(&config().memory)
    }

    fn pricing(&self, model: &str) -> Option<Pricing> {
        let pricing = Pricing {
            currency: "EUR".to_owned(),
            input: 1_000_000.0,
            cached_input: 500_000.0,
            output: 2_000_000.0,
        };
        (model == "fake").then_some(pricing)
    }

    fn documents(&self) -> Option<Arc<dyn DocumentReader>> {
        self.documents.clone()
    }

    fn flow_quota(&self) -> FlowQuota {
        FlowQuota {
            flows: 5,
            versions: 3,
        }
    }

    fn uploads(&self) -> UploadLimits {
        UploadLimits::from(&config().uploads)
    }
}

/// Scripted models, which follow the directives in their input.
#[derive(Debug)]
pub(crate) struct ScriptedAssist(AuxiliaryModels);

impl ScriptedAssist {
    pub(super) fn new() -> Self {
        let catalog = ModelCatalog::new(
            [ModelEntry::new("fake", "scripted", "s")],
            Arc::new(SystemClock),
        );
        let retry = RetryPolicy {
            max_attempts: 1,
            ..RetryPolicy::default()
        };
        Self(AuxiliaryModels {
            catalog: Arc::new(catalog),
            breakers: Arc::default(),
            retry,
        })
    }
}

impl AssistView for ScriptedAssist {
    fn compactor(&self, model: Option<&str>) -> Option<Compactor> {
        let mut rules = SummarizationConfig::default();
        rules.keep.value = 2.0;
        (model != Some("none")).then(|| Compactor::new(&rules, self.0.clone(), model))
    }

    fn ruler(&self, model: Option<&str>) -> Compactor {
        Compactor::new(&SummarizationConfig::default(), self.0.clone(), model)
    }

    fn suggester(&self) -> Option<Suggester> {
        Some(Suggester {
            models: self.0.clone(),
            most: 3,
        })
    }

    fn polisher(&self) -> Option<Polisher> {
        Some(Polisher {
            models: self.0.clone(),
            model: None,
            max_chars: 100,
        })
    }
}

/// Tests collect no metrics: the recorder is global to the process.
#[derive(Debug)]
pub(super) struct NoMetrics;

impl MetricsView for NoMetrics {
    fn render(&self) -> String {
        "deerflow_runs_active 0\n".to_owned()
    }
}

/// Files in a temporary directory of the gateway; records the removed threads.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) home: FileHome,
    pub(crate) removed: Mutex<Vec<String>>,
    _directory: tempfile::TempDir,
}

impl Files {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        Self {
            home: FileHome::new(directory.path(), FileLimits::default()),
            removed: Mutex::default(),
            _directory: directory,
        }
    }
}

#[async_trait]
impl ThreadFilesPort for Files {
    fn thread(&self, user: &str, thread: &ThreadId) -> ThreadFiles {
        self.home.thread(user, thread)
    }

    async fn delete_thread(&self, user: &str, thread: &ThreadId) -> Result<(), ThreadFilesError> {
        self.removed.lock().push(format!("{user}/{thread}"));
        ThreadFilesPort::delete_thread(&self.home, user, thread).await
    }

    async fn note_removal(
        &self,
        user: &str,
        thread: &ThreadId,
        is_removed: bool,
    ) -> Result<(), ThreadFilesError> {
        self.home.note_removal(user, thread, is_removed).await
    }

    async fn sweep(&self) -> Result<Vec<OrphanedThread>, ThreadFilesError> {
        ThreadFilesPort::sweep(&self.home).await
    }

    async fn delete_orphaned(&self, left: OrphanedThread) -> Result<(), ThreadFilesError> {
        self.home.delete_orphaned(left).await
    }
}

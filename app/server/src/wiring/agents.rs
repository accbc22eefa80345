//! The assistants of an installation, rebuilt when the configuration changes.

use std::sync::Arc;

use async_trait::async_trait;
use harness::agents::AgentBuilder;
use harness::clock::Clock;
use harness::config::ModelConfig;
use harness::models::{ModelCatalog, ModelEntry, ProviderKind};
use harness::runtime::agent::{Agent, AgentResolver, AssistantInfo, UnknownAssistant};
use harness::sandbox::FileHome;
use harness::tools::builtins::{Ls, PresentFiles, ReadFile, StrReplace, WriteFile};
use serde_json::{Map, Value};

use crate::config::ConfigHandle;

pub(super) fn resolver(config: ConfigHandle, files: FileHome, clock: Arc<dyn Clock>) -> Arc<dyn AgentResolver> {
    Arc::new(R { config, files, clock })
}

#[derive(Debug)]
struct R {
    config: ConfigHandle,
    files: FileHome,
    clock: Arc<dyn Clock>,
}

#[async_trait]
impl AgentResolver for R {
    async fn resolve(&self, assistant: &str, options: &Map<String, Value>) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        if assistant != "lead_agent" {
            return Err(UnknownAssistant::NotFound(assistant.to_owned()));
        }
        let config = self.config.current();
        let catalog = ModelCatalog::new(
            config.models.iter().map(|m| {
                let mut e = ModelEntry::new(&m.name, &m.provider, &m.model);
                e.extra = (*m.extra).clone();
                e
            }),
            self.clock.clone(),
        );
        let name = options.get("model_name").and_then(Value::as_str);
        let model =
            catalog.get_or_default(name).map_err(|e| UnknownAssistant::Unusable { name: assistant.to_owned(), reason: e.to_string() })?;
        let home = self.files.clone();
        Ok(AgentBuilder::new(model)
            .tool(Ls { home: home.clone(), max_chars: 20000 })
            .tool(ReadFile { home: home.clone(), max_chars: 50000 })
            .tool(WriteFile { home: home.clone() })
            .tool(StrReplace { home: home.clone() })
            .tool(PresentFiles { home })
            .build())
    }
    async fn list(&self) -> Vec<AssistantInfo> {
        vec![AssistantInfo { name: "lead_agent".to_owned(), description: None }]
    }
}

pub(super) fn check_entry(model: &ModelConfig) -> Result<ProviderKind, String> {
    ProviderKind::parse(&model.provider).map_err(|e| e.to_string())
}

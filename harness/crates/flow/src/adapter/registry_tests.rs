//! Tests of the registry.

use async_trait::async_trait;

use super::super::contract::{AdapterContext, AgentAdapter};
use super::*;

#[derive(Debug)]
struct Named(AdapterMetadata, &'static [&'static str]);

#[async_trait]
impl AdapterFactory for Named {
    fn metadata(&self) -> &AdapterMetadata {
        &self.0
    }

    fn aliases(&self) -> &[&str] {
        self.1
    }

    async fn create(&self, _: AdapterContext) -> Result<Arc<dyn AgentAdapter>, FlowError> {
        Err(FlowError::new("unused", ErrorCategory::Adapter, "unused"))
    }
}

fn named(kind: &str, version: &str, aliases: &'static [&'static str]) -> Arc<Named> {
    let metadata = AdapterMetadata {
        adapter_kind: kind.to_owned(),
        display_name: kind.to_owned(),
        adapter_version: version.to_owned(),
        contract_version: version.to_owned(),
        supported_capabilities: Vec::new(),
        limitations: Vec::new(),
    };
    Arc::new(Named(metadata, aliases))
}

#[test]
fn aliases_resolve_to_their_kind() {
    let mut registry = AdapterRegistry::default();
    registry
        .register(named("pi-mono", "1.0", &["deepseek"]))
        .unwrap();
    assert_eq!(
        registry
            .resolve("deepseek")
            .unwrap()
            .metadata()
            .adapter_kind,
        "pi-mono"
    );
    assert_eq!(registry.canonical("deepseek"), Some("pi-mono"));
    assert_eq!(registry.canonical("other"), None);
}

#[test]
fn unknown_kind_names_the_registered_ones() {
    let mut registry = AdapterRegistry::default();
    registry.register(named("fake", "1.0", &[])).unwrap();
    registry.register(named("model", "1.0", &[])).unwrap();
    let error = registry.resolve("nope").unwrap_err();
    assert_eq!(error.code, "adapter_not_found");
    assert!(error.message.contains("fake, model"), "{}", error.message);
}

#[test]
fn registering_a_kind_again_replaces_it() {
    let mut registry = AdapterRegistry::default();
    registry.register(named("fake", "1.0", &["old"])).unwrap();
    registry.register(named("fake", "1.7", &["new"])).unwrap();
    assert_eq!(registry.list().len(), 1);
    assert_eq!(registry.list()[0].contract_version, "1.7");
    assert_eq!(
        (registry.canonical("old"), registry.canonical("new")),
        (None, Some("fake"))
    );
}

#[test]
fn another_major_contract_version_is_refused() {
    let mut registry = AdapterRegistry::default();
    let error = registry.register(named("fake", "2.0", &[])).unwrap_err();
    assert_eq!(error.code, "adapter_incompatible");
    assert!(registry.list().is_empty());
}

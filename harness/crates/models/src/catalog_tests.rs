//! Tests of the models that a configuration defines, and of its errors.

use super::*;
use crate::ProviderKind;
use deerflow_core::clock::SystemClock;

fn catalog(entries: Vec<ModelEntry>) -> ModelCatalog {
    ModelCatalog::new(entries, Arc::new(SystemClock))
}

#[test]
fn first_entry_is_default_and_models_are_shared() {
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
fn build_error_names_the_entry_and_the_fix() {
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
fn fallbacks_must_be_entries_and_buildable() {
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
fn every_kind_builds_and_missing_key_names_its_variable() {
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
        "a local server needs no key"
    );
}

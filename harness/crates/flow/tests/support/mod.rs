//! Compiles documents for tests of the engine.

use std::sync::Arc;

use deerflow_flow::assets::PromptAssetManifest;
use deerflow_flow::binding::KnownAdapters;
use deerflow_flow::compile;
use deerflow_flow::compiled::CompiledFlow;
use deerflow_flow::finding::Validation;
use deerflow_flow::schema::Document;
use deerflow_flow::validate::Options;
use serde_json::Value;

/// Validates and compiles a document.
pub(crate) fn try_compile(
    document: &Value,
    manifest: Option<&Value>,
    adapters: &dyn KnownAdapters,
    strict: bool,
) -> Result<(Arc<CompiledFlow>, Validation), Box<Validation>> {
    let document = Document::from_value(document.clone()).map_err(Box::new)?;
    let manifest: PromptAssetManifest = manifest.map_or_else(Default::default, |manifest| {
        serde_json::from_value(manifest.clone()).expect("a manifest")
    });
    let options = Options {
        strict,
        ..Options::default()
    };
    let compiled = compile::compile(&document, &manifest, adapters, &options).map_err(Box::new)?;
    let validation = Validation {
        valid: true,
        errors: Vec::new(),
        warnings: compiled.warnings,
    };
    Ok((compiled.flow, validation))
}

//! Reads, validates, compiles and draws flows: a text that is read is written so that it reads
//! again as the same document.
#![no_main]

use deerflow_flow::assets::PromptAssetManifest;
use deerflow_flow::binding::AdapterList;
use deerflow_flow::compile::compile;
use deerflow_flow::drawing::{graph, mermaid};
use deerflow_flow::schema::Document;
use deerflow_flow::validate::Options;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(document) = Document::read(text) else { return };
    let written = document.flow.to_json().expect("JSON of a document");
    // Writing may exceed the limit of bytes that the text met.
    if let Ok(read) = Document::read(&written) {
        assert_eq!(read.flow, document.flow);
    }
    let manifest = PromptAssetManifest::default();
    let adapters = AdapterList::new(["fake", "pi-mono"]);
    let options = Options {
        strict: false,
        unknown_fields: true,
        ..Options::default()
    };
    if let Ok(compiled) = compile(&document, &manifest, &adapters, &options) {
        let _drawing = mermaid(&graph(&compiled.flow));
    }
});

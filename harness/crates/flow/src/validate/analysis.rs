//! The one pass over a document that validation and compilation share.

use serde_json::{Map, Value};

use super::model::Model;
use super::options::Options;
use super::{agents, config, edges, graph, layout, secrets};
use crate::assets::PromptAssetManifest;
use crate::binding::{Binding, KnownAdapters};
use crate::finding::{Collector, Finding, FindingCode, Severity};
use crate::kinds::SUPPORTED_VERSIONS;
use crate::schema::{Document, Flow};

/// Results of the pass.
pub(crate) struct Analysis<'d> {
    pub(crate) model: Model<'d>,
    /// Settings of each node.
    pub(crate) settings: Vec<Map<String, Value>>,
    /// Binding of each agent node.
    pub(crate) bindings: Vec<Option<Binding>>,
    pub(crate) findings: Collector,
}

/// Examines a document.
pub(crate) fn analyse<'d>(
    document: &'d Document,
    manifest: &'d PromptAssetManifest,
    adapters: &'d dyn KnownAdapters,
    options: &Options<'_>,
) -> Analysis<'d> {
    let flow = &document.flow;
    let mut findings = Collector::default();
    check_version(flow, &mut findings);
    agents::check_agent_ids(flow, &mut findings);
    let mut model = Model::of_nodes(flow, &mut findings);
    edges::add_edges(&mut model, flow, &mut findings);
    graph::check_port_ids(&model, &mut findings);
    check_kinds(&model, options, &mut findings);
    let settings = config::check_settings(&model, options, &mut findings);
    graph::check_loop_handles(&model, &mut findings);
    let bindings = agents::bind_nodes(&model, flow, manifest, adapters, options, &mut findings);
    graph::check_reachable(&model, &mut findings);
    graph::check_required_inputs(&model, &mut findings);
    graph::check_cycles(&model, &mut findings);
    layout::check_layout(&model, flow, &mut findings);
    secrets::check_secrets(document.value(), &mut findings);
    if options.unknown_fields {
        for finding in document.unknown_fields() {
            findings.add(finding.clone());
        }
    }
    Analysis {
        model,
        settings,
        bindings,
        findings,
    }
}

fn check_version(flow: &Flow, findings: &mut Collector) {
    let version = flow.meta.schema_version.as_str();
    if !SUPPORTED_VERSIONS.contains(&version) {
        let message = format!(
            "`schemaVersion` is {version:.20}; the supported versions are {}",
            SUPPORTED_VERSIONS.join(", ")
        );
        findings.add(
            Finding::new(FindingCode::UnsupportedSchemaVersion, message).at("/meta/schemaVersion"),
        );
    }
}

fn check_kinds(model: &Model<'_>, options: &Options<'_>, findings: &mut Collector) {
    let severity = if options.strict {
        Severity::Error
    } else {
        Severity::Warning
    };
    for node in model.nodes.iter().filter(|node| node.driver.is_none()) {
        let message = format!(
            "nothing executes nodes of kind `{}`; use a built-in kind, or a kind of your own in \
             family `agent` or `loader`",
            node.kind
        );
        let field = if node.node.node_kind.is_some() {
            "/nodeKind"
        } else {
            "/nodeType"
        };
        findings.add_as(
            severity,
            Finding::new(FindingCode::UnknownNodeKind, message)
                .at(node.pointer(field))
                .node(&node.node.node_id),
        );
    }
}

//! Assembles a compiled flow.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::content_hash::content_hash;
use super::driver::DriverContext;
use super::loops::nodes_of_loops;
use super::settings::Settings;
use crate::assets::PromptAssetManifest;
use crate::binding::{KnownAdapters, settings_of_alias};
use crate::compiled::{CompiledFlow, CompiledNode, ControlEdge, DataEdge, FlowLimits, NodeIndex};
use crate::finding::{Finding, FindingCode, Validation};
use crate::kinds::migrate;
use crate::schema::{Document, Flow};
use crate::validate::components::components;
use crate::validate::model::{ControlRole, EdgeModel, Model};
use crate::validate::{Analysis, Options, analyse};

/// A compiled flow with the warnings of its validation.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// Flow.
    pub flow: Arc<CompiledFlow>,
    /// Warnings.
    pub warnings: Vec<Finding>,
}

/// Reads, validates and compiles the text of a flow.
///
/// ```
/// use deerflow_flow::assets::PromptAssetManifest;
/// use deerflow_flow::binding::AdapterList;
/// use deerflow_flow::compile::compile_text;
/// use deerflow_flow::validate::Options;
///
/// let text = "meta: {schemaVersion: '2.0', name: hello}
/// agents: {agentDefs: [{agentId: a, adapterKind: fake}]}
/// graph:
///   startNodeId: greet
///   nodes:
///     - {nodeId: greet, nodeKind: agent.main, agentId: a}
///     - {nodeId: end, nodeKind: control.finish}
///   edges: [{source: greet, target: end}]
/// ";
/// let manifest = PromptAssetManifest::default();
/// let adapters = AdapterList::new(["fake"]);
/// let compiled = compile_text(text, &manifest, &adapters, &Options::default()).unwrap();
/// assert_eq!(compiled.flow.control[0][0].target, compiled.flow.find("end").unwrap());
/// ```
///
/// # Errors
/// Every problem of the flow, with its warnings.
pub fn compile_text(
    text: &str,
    manifest: &PromptAssetManifest,
    adapters: &dyn KnownAdapters,
    options: &Options<'_>,
) -> Result<Compiled, Validation> {
    compile(&Document::read(text)?, manifest, adapters, options)
}

/// Validates and compiles a document.
///
/// # Errors
/// Every problem of the flow, with its warnings.
pub fn compile(
    document: &Document,
    manifest: &PromptAssetManifest,
    adapters: &dyn KnownAdapters,
    options: &Options<'_>,
) -> Result<Compiled, Validation> {
    let mut analysis = analyse(document, manifest, adapters, options);
    let nodes = if analysis.findings.has_errors() {
        Vec::new()
    } else {
        compile_nodes(&mut analysis, &document.flow, options)
    };
    let Analysis {
        model, findings, ..
    } = analysis;
    let validation = findings.finish(|path| document.line(path));
    let Some(start) = model.start.filter(|_| validation.valid) else {
        return Err(validation);
    };
    let mut flow = CompiledFlow {
        content_hash: content_hash(document.text(), &nodes),
        index: nodes
            .iter()
            .enumerate()
            .map(|(i, node)| (node.id.clone(), i))
            .collect(),
        start,
        control: vec![Vec::new(); nodes.len()],
        error_edges: vec![Vec::new(); nodes.len()],
        data: vec![Vec::new(); nodes.len()],
        predecessors: predecessors(&model),
        limits: limits(&document.flow),
        adapter_config: adapter_config(&document.flow, adapters),
        nodes,
        document: Arc::new(migrate(document.flow.clone())),
    };
    add_edges(&mut flow, &model.edges);
    Ok(Compiled {
        flow: Arc::new(flow),
        warnings: validation.warnings,
    })
}

fn compile_nodes(
    analysis: &mut Analysis<'_>,
    flow: &Flow,
    options: &Options<'_>,
) -> Vec<CompiledNode> {
    let model = &analysis.model;
    let loops = nodes_of_loops(model);
    let drivers = DriverContext {
        model,
        settings: &analysis.settings,
        bindings: &analysis.bindings,
        loops: &loops,
        default_turn_ms: flow
            .runtime
            .as_ref()
            .and_then(|r| r.default_turn_timeout_ms),
        project: options.project,
    };
    let failing = model
        .edges
        .iter()
        .filter(|edge| edge.control == ControlRole::Error);
    let failing: HashSet<NodeIndex> = failing.map(|edge| edge.source).collect();
    let mut nodes = Vec::with_capacity(model.nodes.len());
    for (index, node) in model.nodes.iter().enumerate() {
        let settings = Settings(&analysis.settings[index]);
        match drivers.driver(index) {
            Ok(driver) => nodes.push(CompiledNode {
                id: Arc::from(node.node.node_id.as_str()),
                kind: node.kind.to_owned(),
                label: node.node.label.clone(),
                inputs: node.inputs.list.to_vec(),
                outputs: node.outputs.list.to_vec(),
                join: settings.join(node.driver),
                driver,
                retry: settings.retry(),
                on_error: settings.on_error(failing.contains(&index)),
            }),
            Err(message) => analysis.findings.add(
                Finding::new(FindingCode::InvalidConfig, message)
                    .at(node.pointer("/config/promptFile"))
                    .node(&node.node.node_id)
                    .field("promptFile"),
            ),
        }
    }
    nodes
}

fn add_edges(flow: &mut CompiledFlow, edges: &[EdgeModel<'_>]) {
    for edge in edges {
        let control = || ControlEdge {
            index: edge.position,
            target: edge.target,
            handle: edge.source_handle.map(Arc::from),
            condition: edge.condition.clone(),
        };
        match edge.control {
            ControlRole::Normal => flow.control[edge.source].push(control()),
            ControlRole::Error => flow.error_edges[edge.source].push(control()),
            ControlRole::None => {}
        }
        if let (true, Some(from), Some(to)) =
            (edge.carries_data, edge.source_handle, edge.target_handle)
        {
            flow.data[edge.target].push(DataEdge {
                index: edge.position,
                source: edge.source,
                source_port: Arc::from(from),
                target_port: Arc::from(to),
            });
        }
    }
}

/// Returns the control predecessors of each node that are not on a cycle through it, each once.
fn predecessors(model: &Model<'_>) -> Vec<Vec<NodeIndex>> {
    let component = components(&model.control_targets());
    let mut predecessors: Vec<Vec<NodeIndex>> = vec![Vec::new(); model.nodes.len()];
    let mut seen = HashSet::new();
    for edge in model.edges.iter().filter(|edge| edge.carries_control()) {
        let is_forward = component[edge.source] != component[edge.target];
        if is_forward && seen.insert((edge.source, edge.target)) {
            predecessors[edge.target].push(edge.source);
        }
    }
    predecessors
}

fn limits(flow: &Flow) -> FlowLimits {
    let runtime = flow.runtime.as_ref();
    let concurrency = runtime.and_then(|r| r.max_concurrency).unwrap_or(1);
    FlowLimits {
        max_concurrency: usize::try_from(concurrency).unwrap_or(usize::MAX).max(1),
        budget: runtime
            .and_then(|r| r.global_budget.clone())
            .unwrap_or_default(),
        persist_events: runtime.and_then(|r| r.persist_events).unwrap_or(true),
    }
}

/// Returns `runtime.adapterConfig` by canonical kind. What the document says for the canonical
/// name comes before what it says for an alias.
fn adapter_config(
    flow: &Flow,
    adapters: &dyn KnownAdapters,
) -> HashMap<String, Map<String, Value>> {
    let mut by_kind: HashMap<String, Map<String, Value>> = HashMap::new();
    for (name, settings) in flow.runtime.iter().flat_map(|r| &r.adapter_config) {
        let kind = adapters
            .find(name)
            .map_or_else(|| name.clone(), |known| known.kind);
        let merged = by_kind.entry(kind.clone()).or_default();
        let is_alias = kind != *name;
        for (key, value) in settings_of_alias(name).iter().chain(settings) {
            if !is_alias || !merged.contains_key(key) {
                merged.insert(key.clone(), value.clone());
            }
        }
    }
    by_kind
}

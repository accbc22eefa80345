//! Validates and compiles flows with the adapters of this installation.

use std::collections::BTreeSet;
use std::sync::Arc;

use deerflow_domain::flows::{FlowAsset, FlowContent, FlowSummary};
use deerflow_flow::assets::{
    AgentAsset, GLOBAL_PROMPT_FILE, MemoryAssets, PromptAssetManifest, scan,
};
use deerflow_flow::compile::compile;
use deerflow_flow::compiled::CompiledFlow;
use deerflow_flow::documents::{DocumentRules, project_documents, project_folder};
use deerflow_flow::finding::Validation;
use deerflow_flow::schema::{Document, Flow};
use deerflow_flow::validate::{Options, validate};
use harness::runtime::compute::Size;
use serde_json::{Map, Value};

use super::adapters::FlowAdapters;

/// Estimated cost of a byte of a flow's text, in bytes of JSON to parse.
const COST_OF_TEXT: usize = 16;

/// Rules by which flows are validated.
#[derive(Debug, Clone)]
pub struct FlowRules {
    adapters: Arc<dyn FlowAdapters>,
}

/// A validated content.
#[derive(Debug, Clone)]
pub struct CheckedFlow {
    /// All findings.
    pub validation: Validation,
    /// The content without assets that the flow does not use, and its summary; `None` if it is not
    /// valid.
    pub checked: Option<(FlowContent, FlowSummary)>,
}

impl FlowRules {
    /// Creates rules.
    pub fn new(adapters: Arc<dyn FlowAdapters>) -> Self {
        Self { adapters }
    }

    /// Adapters that flows may name.
    pub fn adapters(&self) -> &dyn FlowAdapters {
        &*self.adapters
    }

    /// Returns the size of the work on a content.
    pub fn size(content: &FlowContent) -> Size {
        Size::bytes(content.text.len().saturating_mul(COST_OF_TEXT))
    }

    /// Validates a content that is to be stored.
    pub fn check(&self, content: FlowContent) -> CheckedFlow {
        let project = Project::of(&content);
        let refused = |validation| CheckedFlow {
            validation,
            checked: None,
        };
        let document = match Document::read(&content.text) {
            Ok(document) => document,
            Err(validation) => return refused(validation),
        };
        let validation = self.validate_document(&document, &project, true, false);
        if !validation.valid {
            return refused(validation);
        }
        let used = used_assets(&document.flow, &project);
        let summary = summary_of(&document.flow);
        let is_used = |asset: &FlowAsset| used.contains(asset.path.as_str());
        let assets = content.assets.iter().filter(|asset| is_used(asset));
        let content = FlowContent::new(content.text.clone(), assets.cloned().collect());
        CheckedFlow {
            validation,
            checked: Some((content, summary)),
        }
    }

    /// Validates a document and reports unknown fields, too.
    pub fn validate(
        &self,
        document: &Document,
        assets: &[FlowAsset],
        strict: bool,
        deep: bool,
    ) -> Validation {
        let project = Project::of_assets(assets);
        self.validate_document(document, &project, strict, deep)
    }

    fn validate_document(
        &self,
        document: &Document,
        project: &Project,
        strict: bool,
        deep: bool,
    ) -> Validation {
        let options = Options {
            strict,
            deep,
            unknown_fields: true,
            project: Some(&project.files),
        };
        validate(document, &project.manifest, &*self.adapters, &options)
    }

    /// Compiles a content.
    ///
    /// # Errors
    /// The findings, if it is not valid.
    pub fn compile(&self, content: &FlowContent, hash: &str) -> Result<CompiledFlow, Validation> {
        let project = Project::of(content);
        let document = Document::read(&content.text)?;
        let options = Options {
            project: Some(&project.files),
            ..Options::default()
        };
        let compiled = compile(&document, &project.manifest, &*self.adapters, &options)?;
        let mut flow = Arc::unwrap_or_clone(compiled.flow);
        flow.content_hash = hash.to_owned();
        Ok(flow)
    }
}

/// Files of a flow's project.
struct Project {
    files: MemoryAssets,
    manifest: PromptAssetManifest,
}

impl Project {
    fn of(content: &FlowContent) -> Self {
        Self::of_assets(&content.assets)
    }

    fn of_assets(assets: &[FlowAsset]) -> Self {
        let file = |asset: &FlowAsset| (asset.path.clone(), asset.text.clone());
        let files = MemoryAssets::new(assets.iter().map(file));
        let manifest = scan(&files);
        Self { files, manifest }
    }
}

/// Returns what lists display of a document.
fn summary_of(flow: &Flow) -> FlowSummary {
    FlowSummary {
        name: flow.meta.name.clone(),
        description: flow.meta.description.clone(),
        schema_version: flow.meta.schema_version.clone(),
        node_count: flow.graph.nodes.len() as u64,
        agent_count: flow.agents.agent_defs.len() as u64,
    }
}

/// Returns the paths of the files that a valid flow uses: those of the agents that its nodes name
/// with `agentRef`, with what they include, those of its prompt nodes, and the documents of its
/// loaders.
fn used_assets(flow: &Flow, project: &Project) -> BTreeSet<String> {
    let manifest = &project.manifest;
    let mut used = BTreeSet::new();
    for node in &flow.graph.nodes {
        let file = node.config.get("promptFile").and_then(|file| file.as_str());
        used.extend(file.map(|file| file.trim_start_matches("./").to_owned()));
        used.extend(documents_of(&node.config, project));
        let agent = node
            .agent_ref
            .as_deref()
            .and_then(|id| manifest.agents.get(id));
        used.extend(
            agent
                .into_iter()
                .flat_map(|agent| files_of(agent, manifest)),
        );
    }
    used
}

/// Returns the paths of the documents that a node loads from the project.
fn documents_of(config: &Map<String, Value>, project: &Project) -> Vec<String> {
    let (Some(folder), Ok(rules)) = (project_folder(config), DocumentRules::read(config)) else {
        return Vec::new();
    };
    let found = project_documents(&project.files, folder, &rules);
    found.ok().flatten().unwrap_or_default()
}

fn files_of(agent: &AgentAsset, manifest: &PromptAssetManifest) -> Vec<String> {
    let includes = &agent.includes;
    let instructions = includes
        .instructions
        .iter()
        .filter_map(|name| manifest.instructions.get(name));
    let skills = includes
        .skills
        .iter()
        .filter_map(|name| manifest.skills.get(name));
    let included = instructions
        .chain(skills)
        .filter_map(|text| text.source_path.clone());
    let global = includes
        .global_system_prompt
        .then(|| GLOBAL_PROMPT_FILE.to_owned());
    agent
        .source_path
        .clone()
        .into_iter()
        .chain(included)
        .chain(global)
        .collect()
}

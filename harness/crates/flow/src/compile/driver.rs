//! Typed settings of each kind of node.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::settings::Settings;
use crate::adapter::TurnMode;
use crate::assets::AssetFiles;
use crate::binding::Binding;
use crate::compiled::{
    AgentNode, Driver, FinishNode, HumanNode, LoaderKind, LoaderNode, LoopNode, MergeMode,
    NodeIndex, OutputFormat, PlanLoopNode, PromptNode, SubflowNode,
};
use crate::condition::Condition;
use crate::documents::{DocumentRules, project_folder, read_project};
use crate::kinds::KindDriver;
use crate::schema::OutputKind;
use crate::validate::model::Model;

/// Limit of turns that nothing else limits.
const DEFAULT_TURN_MS: u64 = 60_000;

/// Sources of the drivers of a flow.
pub(super) struct DriverContext<'a, 'd> {
    pub(super) model: &'a Model<'d>,
    pub(super) settings: &'a [Map<String, Value>],
    pub(super) bindings: &'a [Option<Binding>],
    /// Nodes that lead back to each plan loop.
    pub(super) loops: &'a HashMap<NodeIndex, Vec<NodeIndex>>,
    /// `runtime.defaultTurnTimeoutMs`.
    pub(super) default_turn_ms: Option<u64>,
    pub(super) project: Option<&'a dyn AssetFiles>,
}

impl DriverContext<'_, '_> {
    /// Returns what executes a node.
    ///
    /// # Errors
    /// A message, if a file of the project cannot be read.
    pub(super) fn driver(&self, node: NodeIndex) -> Result<Driver, String> {
        let settings = Settings(&self.settings[node]);
        let Some(kind) = self.model.nodes[node].driver else {
            return Ok(Driver::Skip);
        };
        Ok(match kind {
            KindDriver::Agent => match &self.bindings[node] {
                Some(binding) => Driver::Agent(Box::new(self.agent(node, &settings, binding))),
                None => Driver::Skip,
            },
            KindDriver::Loader(kind) => Driver::Loader(Box::new(self.loader(kind, settings.0)?)),
            KindDriver::Prompt => Driver::Prompt(self.prompt(&settings)?),
            KindDriver::PlanLoop => Driver::PlanLoop(self.plan_loop(node, &settings)),
            KindDriver::Loop => Driver::Loop(LoopNode {
                max_iterations: settings.integer("maxIterations").unwrap_or(10),
                condition: settings
                    .text("condition")
                    .and_then(|text| Condition::parse(&text).ok()),
            }),
            KindDriver::Router => Driver::Router,
            KindDriver::Parallel | KindDriver::Join => Driver::Pass,
            KindDriver::Human => Driver::Human(HumanNode {
                prompt: settings.text("prompt").unwrap_or_default(),
                options: settings.texts("options"),
                accepts_any: self.has_edge(node, "response"),
            }),
            KindDriver::Subflow => Driver::Subflow(SubflowNode {
                flow_id: settings.text("flowId").unwrap_or_default(),
            }),
            KindDriver::Finish => Driver::Finish(FinishNode {
                format: match settings.text("outputFormat").as_deref() {
                    Some("json") => OutputFormat::Json,
                    Some("markdown") => OutputFormat::Markdown,
                    _ => OutputFormat::Text,
                },
            }),
        })
    }

    fn agent(&self, node: NodeIndex, settings: &Settings<'_>, binding: &Binding) -> AgentNode {
        let agent = &binding.agent;
        let turn_mode = self.turn_mode(node);
        let output_kind = agent.output_kind.unwrap_or(match turn_mode {
            TurnMode::Normal => OutputKind::Text,
            TurnMode::Plan => OutputKind::Plan,
            TurnMode::Evaluate => OutputKind::Score,
        });
        let default_turn_ms = binding
            .adapter
            .has_default_turn_limit
            .then_some(DEFAULT_TURN_MS);
        let profile = &agent.model_profile;
        AgentNode {
            turn_mode,
            output_kind,
            system_prompt: settings.text("systemPrompt"),
            user_prompt: settings.text("userPrompt"),
            evaluate_prompt: settings.text("evaluatePrompt"),
            loop_evaluate_prompt: self.loop_evaluate_prompt(node),
            model: settings.text("model").or_else(|| {
                profile
                    .model
                    .clone()
                    .filter(|model| !model.trim().is_empty())
            }),
            temperature: settings.number("temperature").or(profile.temperature),
            max_tokens: settings.integer("maxTokens").or(profile.max_tokens),
            turn_limit_ms: settings
                .integer("timeoutMs")
                .or(agent.timeouts.turn_ms)
                .or(self.default_turn_ms)
                .or(default_turn_ms),
            budgets: settings.parsed("budgets").unwrap_or_default(),
            agent: agent.clone(),
        }
    }

    /// Returns the mode of a node's turns: of the node, else of the asset, else normal.
    fn turn_mode(&self, node: NodeIndex) -> TurnMode {
        let binding = self.bindings[node].as_ref();
        match self.settings[node].get("turnMode").and_then(Value::as_str) {
            Some("plan") => TurnMode::Plan,
            Some("evaluate") => TurnMode::Evaluate,
            Some(_) => TurnMode::Normal,
            None => binding
                .and_then(|binding| binding.agent.turn_mode)
                .unwrap_or_default(),
        }
    }

    /// Returns the rubric of the first plan loop that the node leads back to.
    fn loop_evaluate_prompt(&self, node: NodeIndex) -> Option<String> {
        let mut loops: Vec<NodeIndex> = self
            .loops
            .iter()
            .filter(|(_, nodes)| nodes.contains(&node))
            .map(|(&plan_loop, _)| plan_loop)
            .collect();
        loops.sort_unstable();
        loops
            .into_iter()
            .find_map(|plan_loop| Settings(&self.settings[plan_loop]).text("evaluatePrompt"))
    }

    fn plan_loop(&self, node: NodeIndex, settings: &Settings<'_>) -> PlanLoopNode {
        let nodes = self.loops.get(&node).into_iter().flatten().copied();
        let evaluates = |&node: &NodeIndex| {
            self.bindings[node].is_some() && self.turn_mode(node) == TurnMode::Evaluate
        };
        PlanLoopNode {
            max_iterations: settings.integer("maxIterations").unwrap_or(5),
            completion_threshold: settings.number("completionThreshold").unwrap_or(0.8),
            evaluate_prompt: settings.text("evaluatePrompt"),
            has_plan: self.has_edge(node, "plan"),
            has_evaluate: self.has_edge(node, "evaluate"),
            evaluators: nodes.filter(evaluates).collect(),
        }
    }

    /// Returns `true` if an edge leaves this handle of a node.
    fn has_edge(&self, node: NodeIndex, handle: &str) -> bool {
        let mut edges = self.model.edges.iter();
        edges.any(|edge| {
            edge.source == node && edge.source_handle == Some(handle) && edge.carries_control()
        })
    }

    /// Returns a loader with the documents of the project; those of the thread are read by the run.
    fn loader(
        &self,
        kind: LoaderKind,
        settings: &Map<String, Value>,
    ) -> Result<LoaderNode, String> {
        let mut loader = loader(kind, settings);
        let reads_folder = matches!(kind, LoaderKind::WorkDir | LoaderKind::LocalDir);
        let folder = project_folder(settings).filter(|_| reads_folder);
        let (Some(folder), Some(project)) = (folder, self.project) else {
            return Ok(loader);
        };
        let rules = DocumentRules::read(&loader.config)
            .map_err(|error| format!("`filePattern`: {error}"))?;
        loader.documents = read_project(project, folder, &rules)
            .map_err(|error| format!("`directory`: cannot read {folder}: {error}"))?;
        Ok(loader)
    }

    /// Merges the text of a file of the project into the text of the node; a file of the thread is
    /// read by the run.
    fn prompt(&self, settings: &Settings<'_>) -> Result<PromptNode, String> {
        let merge = match settings.text("mergeMode").as_deref() {
            Some("prepend") => MergeMode::Prepend,
            Some("replace") => MergeMode::Replace,
            _ => MergeMode::Append,
        };
        let text = settings.text("promptText").unwrap_or_default();
        let file = settings.text("promptFile");
        let file = file.map(|path| path.trim_start_matches("./").to_owned());
        let (Some(path), Some(project)) = (&file, self.project) else {
            return Ok(PromptNode { text, file, merge });
        };
        if path.starts_with('/') {
            return Ok(PromptNode { text, file, merge });
        }
        let content = project
            .read(path)
            .map_err(|error| format!("`promptFile`: cannot read {path}: {error}"))?;
        Ok(PromptNode {
            text: merge.merge(&text, &content),
            file: None,
            merge,
        })
    }
}

fn loader(kind: LoaderKind, settings: &Map<String, Value>) -> LoaderNode {
    let defaults = match kind {
        LoaderKind::WorkDir | LoaderKind::LocalDir => {
            json!({"filePattern": "**/*", "recursive": true, "maxFileSize": 10_485_760})
        }
        LoaderKind::HttpAuth => {
            json!({"method": "GET", "authType": "none", "authHeader": "X-API-Key"})
        }
        LoaderKind::Input | LoaderKind::Custom => json!({}),
    };
    let mut config = match defaults {
        Value::Object(defaults) => defaults,
        _ => Map::new(),
    };
    config.extend(settings.clone());
    LoaderNode {
        kind,
        config,
        documents: None,
    }
}

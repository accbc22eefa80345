//! Compiled nodes: the kind with its typed settings.

use std::sync::Arc;

use serde_json::Value;

use super::agent::EffectiveAgent;
use crate::schema::TurnMode;
use crate::schema::{Budgets, OutputKind, Port};

/// Index of a node in [`super::CompiledFlow::nodes`].
pub type NodeIndex = usize;

/// A node, ready to run.
#[derive(Debug, Clone)]
pub struct CompiledNode {
    /// Id.
    pub id: Arc<str>,
    /// Kind, as `family.variant`.
    pub kind: String,
    /// Label for people.
    pub label: Option<String>,
    /// Effective input ports.
    pub inputs: Vec<Port>,
    /// Effective output ports.
    pub outputs: Vec<Port>,
    /// Condition under which the node starts.
    pub join: Join,
    /// Executor.
    pub driver: Driver,
    /// Retries after retryable failures.
    pub retry: RetryPolicy,
    /// Handling of a failure after the last retry.
    pub on_error: OnError,
}

/// Executor of a node, with its settings.
#[derive(Debug, Clone)]
pub enum Driver {
    /// A turn of an agent.
    Agent(Box<AgentNode>),
    /// A loader; publishes the run's input if the application has none for it.
    Loader(Box<LoaderNode>),
    /// Publishes a prompt text.
    Prompt(PromptNode),
    /// Plan, execute and evaluate in rounds.
    PlanLoop(PlanLoopNode),
    /// Counted loop.
    Loop(LoopNode),
    /// First edge whose condition is true.
    Router,
    /// Passes control to all edges: `control.parallel` and `control.join`.
    Pass,
    /// Question to a person.
    Human(HumanNode),
    /// Run of another flow.
    Subflow(SubflowNode),
    /// Result of the run.
    Finish(FinishNode),
    /// Unknown kind that a lenient validation accepts: does nothing.
    Skip,
}

/// Condition under which a node starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// After any predecessor.
    Any,
    /// After all predecessors that are not on a cycle through the node.
    All,
    /// Starts when nothing else is active.
    Defer,
}

/// Settings of an agent node.
#[derive(Debug, Clone)]
pub struct AgentNode {
    /// Bound agent.
    pub agent: Arc<EffectiveAgent>,
    /// Mode of its turns: of the node, else of the asset, else normal.
    pub turn_mode: TurnMode,
    /// Kind of the output: of the agent, else what the mode implies.
    pub output_kind: OutputKind,
    /// `config.systemPrompt`.
    pub system_prompt: Option<String>,
    /// `config.userPrompt`.
    pub user_prompt: Option<String>,
    /// `config.evaluatePrompt`.
    pub evaluate_prompt: Option<String>,
    /// `evaluatePrompt` of the plan loop that this node leads back to.
    pub loop_evaluate_prompt: Option<String>,
    /// `config.model`, else the model of the agent.
    pub model: Option<String>,
    /// `config.temperature`, else the temperature of the agent.
    pub temperature: Option<f64>,
    /// `config.maxTokens`, else that of the agent.
    pub max_tokens: Option<u64>,
    /// Limit of a turn in milliseconds; `None` for no limit.
    pub turn_limit_ms: Option<u64>,
    /// `config.budgets`: budgets of this node, before those of the agent.
    pub budgets: Budgets,
}

/// Kind of a loader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoaderKind {
    /// Folder of the workspace.
    WorkDir,
    /// Folder.
    LocalDir,
    /// HTTP request.
    HttpAuth,
    /// Input of the run.
    Input,
    /// Kind of a custom node specification.
    Custom,
}

/// Settings of a loader node.
#[derive(Debug, Clone)]
pub struct LoaderNode {
    /// Kind.
    pub kind: LoaderKind,
    /// Settings with the kind's defaults.
    pub config: serde_json::Map<String, Value>,
    /// Documents of the flow's project, if `directory` is a folder of it.
    pub documents: Option<Value>,
}

/// Place of the text of a prompt node relative to the prompt of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MergeMode {
    /// After it.
    #[default]
    Append,
    /// Before it.
    Prepend,
    /// Instead of it.
    Replace,
}

impl MergeMode {
    /// Merges the text of a file into the text of a node.
    pub fn merge(self, text: &str, content: &str) -> String {
        let parts = match self {
            Self::Append => [text, content.trim()],
            Self::Prepend => [content.trim(), text],
            Self::Replace => ["", content.trim()],
        };
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join("\n\n")
    }
}

/// Settings of `input.prompt`.
#[derive(Debug, Clone)]
pub struct PromptNode {
    /// Text; that of `promptFile` if the document names a file.
    pub text: String,
    /// File to read at run time: a path below `/mnt/user-data`.
    pub file: Option<String>,
    /// Place of the text.
    pub merge: MergeMode,
}

/// Settings of `control.plan-loop`.
#[derive(Debug, Clone)]
pub struct PlanLoopNode {
    /// Maximum execute rounds.
    pub max_iterations: u64,
    /// Score from which the work is complete, 0 to 1.
    pub completion_threshold: f64,
    /// Rubric of evaluating nodes without one of their own.
    pub evaluate_prompt: Option<String>,
    /// `true` if an edge leaves handle `plan`.
    pub has_plan: bool,
    /// `true` if an edge leaves handle `evaluate`.
    pub has_evaluate: bool,
    /// Evaluate-mode nodes that lead back to this loop, in declaration order.
    pub evaluators: Vec<NodeIndex>,
}

/// Settings of `control.loop`.
#[derive(Debug, Clone)]
pub struct LoopNode {
    /// Maximum rounds.
    pub max_iterations: u64,
    /// Condition to continue; always true if absent.
    pub condition: Option<crate::condition::Condition>,
}

/// Settings of `control.human`.
#[derive(Debug, Clone)]
pub struct HumanNode {
    /// Question.
    pub prompt: String,
    /// Options, each a handle.
    pub options: Vec<String>,
    /// `true` if an edge leaves handle `response`, so that any answer is accepted.
    pub accepts_any: bool,
}

/// Settings of `control.subflow`.
#[derive(Debug, Clone)]
pub struct SubflowNode {
    /// Id of the flow.
    pub flow_id: String,
}

/// Format of the result of a finish node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    /// Text.
    Text,
    /// JSON value.
    Json,
    /// Markdown text.
    Markdown,
}

/// Settings of `control.finish`.
#[derive(Debug, Clone)]
pub struct FinishNode {
    /// Format.
    pub format: OutputFormat,
}

/// Retries of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryPolicy {
    /// Maximum attempts, at least 1.
    pub max_attempts: u32,
    /// Delay before the second attempt in milliseconds.
    pub initial_interval_ms: u64,
    /// Factor of the delay per attempt.
    pub backoff_factor: f64,
    /// Maximum delay in milliseconds.
    pub max_interval_ms: u64,
    /// `true` if delays vary at random.
    pub jitter: bool,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 1,
            initial_interval_ms: 500,
            backoff_factor: 2.0,
            max_interval_ms: 30_000,
            jitter: true,
        }
    }
}

/// Handling of a failure.
#[derive(Debug, Clone, PartialEq)]
pub enum OnError {
    /// The run fails.
    Fail,
    /// The node publishes this output and takes its normal edges.
    Continue(Value),
    /// The node takes the edges of handle `error`.
    Branch,
}

//! Visits of a superstep and their results.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::output::{LoopState, NodeOutput};
use crate::adapter::{FlowError, TurnWarning};
use crate::compiled::NodeIndex;

/// A node that is active in a superstep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Activation {
    /// Node.
    pub node: NodeIndex,
    /// Nodes whose edges activated it.
    pub sources: Vec<NodeIndex>,
    /// Nodes whose texts are the previous result: the sources, or what control nodes pass on.
    pub carried: Vec<NodeIndex>,
    /// Number of the visit, from 1.
    pub visit: u64,
    /// Progress.
    pub stage: VisitStage,
}

/// Progress of a visit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum VisitStage {
    /// Has no result; also while an attempt runs.
    Pending(PendingVisit),
    /// Has a result that earlier visits of the step hold back.
    Finished(VisitResult),
    /// Its result is committed; these edges are next.
    Committed(Route),
    /// Waits for answers.
    Asking(Box<AskingVisit>),
    /// Failed, and nothing handles the failure.
    Failed(Box<FlowError>),
}

/// A visit without a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PendingVisit {
    /// Next or current attempt, from 1.
    pub attempt: u32,
    /// Answer to the question of an earlier attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
    /// Number of questions that earlier attempts asked.
    #[serde(default)]
    pub asked: u64,
    /// Saved run of a sub-flow that stopped at questions, with their answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nested: Option<Value>,
}

impl Default for PendingVisit {
    fn default() -> Self {
        Self {
            attempt: 1,
            answer: None,
            asked: 0,
            nested: None,
        }
    }
}

/// A visit that waits for answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AskingVisit {
    /// Open questions; several if a sub-flow asks them.
    pub questions: Vec<Question>,
    /// Answers so far, by question id.
    pub answers: BTreeMap<String, Value>,
    /// Questions of earlier attempts and of this one.
    pub asked: u64,
    /// Saved run of the sub-flow that asks.
    pub nested: Option<Value>,
}

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Id, stable across processes.
    pub id: String,
    /// Id of the node; `outer/inner` in a sub-flow.
    pub node: String,
    /// Question as clients read it.
    pub value: Value,
}

/// Result of a visit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum VisitResult {
    /// Completed.
    Completed(Box<Completion>),
    /// Failed after the last attempt.
    Failed(Box<FlowError>),
}

/// Values that a completed visit publishes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Completion {
    /// Output of a node that produces text.
    pub output: Option<NodeOutput>,
    /// Values of output ports.
    pub ports: BTreeMap<String, Value>,
    /// Edges that it takes.
    pub route: Route,
    /// Handle or action, for the trace.
    pub action: Option<String>,
    /// Change of the position of a loop.
    pub loop_change: LoopChange,
    /// Result of the run.
    pub result: Option<Value>,
    /// Warnings.
    pub warnings: Vec<TurnWarning>,
}

impl Default for Completion {
    fn default() -> Self {
        Self {
            output: None,
            ports: BTreeMap::new(),
            route: Route::All,
            action: None,
            loop_change: LoopChange::None,
            result: None,
            warnings: Vec::new(),
        }
    }
}

impl Completion {
    /// Creates a completion that publishes a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            output: Some(NodeOutput::text(text)),
            ..Self::default()
        }
    }
}

/// Edges that a visit takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Route {
    /// All control edges whose condition is true.
    All,
    /// These control edges, by position among those of the node.
    Edges(Vec<usize>),
    /// The edges of handle `error`.
    Error,
}

/// Change of the position of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LoopChange {
    /// None.
    None,
    /// New position.
    Set(LoopState),
    /// The loop is left.
    Clear,
}

/// Outcome of one attempt of a visit, as the driver reports it.
#[derive(Debug, Clone, PartialEq)]
pub enum AttemptOutcome {
    /// Completed.
    Completed(Box<Completion>),
    /// Failed.
    Failed(Box<FlowError>),
    /// Stopped at questions. `nested` is the saved run of a sub-flow.
    Asked {
        /// Question of the node itself.
        question: Option<Value>,
        /// Questions of a sub-flow, with inner node ids.
        inner: Vec<Question>,
        /// Saved run of the sub-flow.
        nested: Option<Value>,
    },
    /// Stopped because the run or the step ends; the visit stays pending.
    Cancelled,
}

impl From<Result<Completion, FlowError>> for AttemptOutcome {
    fn from(result: Result<Completion, FlowError>) -> Self {
        match result {
            Ok(completion) => Self::Completed(Box::new(completion)),
            Err(error) => Self::Failed(Box::new(error)),
        }
    }
}

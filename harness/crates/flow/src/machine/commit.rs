//! Results of visits: retries, commits in activation order, and handling of failures.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::activation::{
    AskingVisit, AttemptOutcome, Completion, LoopChange, PendingVisit, Question, Route,
    VisitResult, VisitStage,
};
use super::data::RunData;
use super::machine::FlowMachine;
use super::output::{NodeData, NodeOutput};
use super::retry::retry_delay_ms;
use crate::adapter::{ErrorCategory, FlowError, TurnWarning};
use crate::compiled::{CompiledFlow, NodeIndex, OnError};
use uuid::Uuid;

/// Consequence of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum Applied {
    /// The visit has a result; [`FlowMachine::commit`] may commit it.
    Stored,
    /// Repeat the visit after a delay.
    Retry {
        /// Coming attempt, from 2.
        attempt: u32,
        /// Delay in milliseconds.
        delay_ms: u64,
    },
    /// The visit failed and nothing handles it: stop the other visits of the step.
    Fatal,
    /// The visit waits for answers, or it was cancelled and stays pending.
    Open,
}

/// A committed result.
#[derive(Debug, Clone, PartialEq)]
pub struct Commit {
    /// Position in the superstep.
    pub position: usize,
    /// Node.
    pub node: NodeIndex,
    /// Number of the visit.
    pub visit: u64,
    /// End of the visit.
    pub end: CommitEnd,
    /// Warnings.
    pub warnings: Vec<TurnWarning>,
}

/// End of a visit.
#[derive(Debug, Clone, PartialEq)]
pub enum CommitEnd {
    /// Completed, with the handle or action taken.
    Completed(Option<String>),
    /// Failed; the run goes on.
    Handled(FlowError),
    /// Failed; the run fails.
    Failed(FlowError),
}

impl FlowMachine {
    /// Applies the outcome of an attempt of the visit at `position`. `jitter` returns a random
    /// number from 0 to 1; it is called before a retry.
    pub fn apply(
        &mut self,
        flow: &CompiledFlow,
        position: usize,
        outcome: AttemptOutcome,
        jitter: impl FnOnce() -> f64,
    ) -> Applied {
        let Some(visit) = self.active.get(position) else {
            return Applied::Open;
        };
        let VisitStage::Pending(pending) = &visit.stage else {
            return Applied::Open;
        };
        let (index, attempt, asked) = (visit.node, pending.attempt, pending.asked);
        let node = &flow.nodes[index];
        let (stage, applied) = match outcome {
            AttemptOutcome::Cancelled => return Applied::Open,
            AttemptOutcome::Completed(completion) => {
                let result = VisitResult::Completed(completion);
                (VisitStage::Finished(result), Applied::Stored)
            }
            AttemptOutcome::Asked {
                question,
                inner,
                nested,
            } => {
                let own = question.map(|value| Question {
                    id: self.question_id(flow, index, asked),
                    node: node.id.to_string(),
                    value,
                });
                let outer = |question: Question| Question {
                    node: format!("{}/{}", node.id, question.node),
                    ..question
                };
                let questions = own
                    .into_iter()
                    .chain(inner.into_iter().map(outer))
                    .collect();
                let asking = AskingVisit {
                    questions,
                    answers: std::collections::BTreeMap::new(),
                    asked: asked + 1,
                    nested,
                };
                (VisitStage::Asking(Box::new(asking)), Applied::Open)
            }
            AttemptOutcome::Failed(error)
                if error.retryable && attempt < node.retry.max_attempts =>
            {
                let attempt = attempt + 1;
                let delay_ms = retry_delay_ms(&node.retry, attempt, &error, jitter());
                let VisitStage::Pending(pending) = &mut self.active[position].stage else {
                    return Applied::Open;
                };
                pending.attempt = attempt;
                return Applied::Retry { attempt, delay_ms };
            }
            AttemptOutcome::Failed(error) => {
                let error = FlowError {
                    node_id: Some(node.id.to_string()),
                    ..*error
                };
                let applied = if node.on_error == OnError::Fail {
                    Applied::Fatal
                } else {
                    Applied::Stored
                };
                (
                    VisitStage::Finished(VisitResult::Failed(Box::new(error))),
                    applied,
                )
            }
        };
        self.active[position].stage = stage;
        applied
    }

    fn question_id(&self, flow: &CompiledFlow, node: NodeIndex, asked: u64) -> String {
        let task = self.task_id(flow, node);
        Uuid::new_v5(&task, asked.to_string().as_bytes())
            .simple()
            .to_string()
    }

    /// Commits the next result in activation order. Results behind a visit that has none wait,
    /// unless `all` is set, because the step ends early.
    pub fn commit(&mut self, flow: &CompiledFlow, data: &mut RunData, all: bool) -> Option<Commit> {
        let mut position = 0;
        loop {
            match self.active.get(position)?.stage {
                VisitStage::Finished(_) => break,
                VisitStage::Pending(_) if !all => return None,
                _ => position += 1,
            }
        }
        let visit = &mut self.active[position];
        let (node, number) = (visit.node, visit.visit);
        let stage = std::mem::replace(&mut visit.stage, VisitStage::Committed(Route::All));
        let VisitStage::Finished(result) = stage else {
            return None;
        };
        let result = match result {
            VisitResult::Completed(completion) => self.complete(flow, data, node, *completion),
            VisitResult::Failed(error) => Err(*error),
        };
        let mut warnings = Vec::new();
        let (stage, end) = match result {
            Ok(committed) => {
                warnings = committed.warnings;
                let end = CommitEnd::Completed(committed.action);
                (VisitStage::Committed(committed.route), end)
            }
            Err(error) => self.fail(flow, data, node, error),
        };
        data.nodes[node].visits = number;
        self.active[position].stage = stage;
        Some(Commit {
            position,
            node,
            visit: number,
            end,
            warnings,
        })
    }

    /// Publishes a completion.
    fn complete(
        &mut self,
        flow: &CompiledFlow,
        data: &mut RunData,
        node: NodeIndex,
        completion: Completion,
    ) -> Result<Committed, FlowError> {
        self.sequence += 1;
        let Completion {
            output,
            ports,
            route,
            action,
            loop_change,
            result,
            warnings,
        } = completion;
        let output = output.map(|output| NodeOutput {
            sequence: self.sequence,
            ..output
        });
        self.publish_within(flow, data, node, output, ports)?;
        match loop_change {
            LoopChange::None => {}
            LoopChange::Set(state) => data.nodes[node].loop_state = Some(state),
            LoopChange::Clear => data.nodes[node].loop_state = None,
        }
        // A channel cannot tell null from no value.
        if let Some(result) = result.filter(|value| !value.is_null()) {
            data.result = Some(result);
        }
        Ok(Committed {
            route,
            action,
            warnings,
        })
    }

    /// Replaces output and ports of a node, within the maximum size of all values.
    pub(super) fn publish_within(
        &self,
        flow: &CompiledFlow,
        data: &mut RunData,
        node: NodeIndex,
        output: Option<NodeOutput>,
        ports: BTreeMap<String, Value>,
    ) -> Result<(), FlowError> {
        let replacement = NodeData {
            output,
            ports,
            ..NodeData::default()
        };
        let bytes = data.bytes_with(node, &replacement);
        let limit = self.run.bounds.max_state_bytes;
        if bytes > limit {
            let message = format!("outputs and ports of the run exceed {limit} bytes");
            let error = FlowError::new("state_too_large", ErrorCategory::Engine, message);
            return Err(error.at_node(flow.nodes[node].id.to_string()));
        }
        data.publish(node, replacement.output, replacement.ports);
        Ok(())
    }

    /// Handles a failure as the node demands.
    fn fail(
        &mut self,
        flow: &CompiledFlow,
        data: &mut RunData,
        node: NodeIndex,
        error: FlowError,
    ) -> (VisitStage, CommitEnd) {
        data.record_error(error.clone());
        let compiled = &flow.nodes[node];
        let completion = match &compiled.on_error {
            OnError::Fail => {
                let stage = VisitStage::Failed(Box::new(error.clone()));
                return (stage, CommitEnd::Failed(error));
            }
            OnError::Continue(value) => default_completion(flow, node, value),
            OnError::Branch => Completion {
                route: Route::Error,
                ports: [("error".to_owned(), error_port(&error))].into(),
                ..Completion::default()
            },
        };
        match self.complete(flow, data, node, completion) {
            Ok(committed) => (
                VisitStage::Committed(committed.route),
                CommitEnd::Handled(error),
            ),
            Err(error) => (
                VisitStage::Failed(Box::new(error.clone())),
                CommitEnd::Failed(error),
            ),
        }
    }

    /// Makes visits that failed, and those that a failure cancelled, pending with a new attempt
    /// count, so that a new run repeats them.
    pub(super) fn reset_failures(&mut self) {
        for visit in &mut self.active {
            match &mut visit.stage {
                VisitStage::Failed(_) => {
                    visit.stage = VisitStage::Pending(PendingVisit::default());
                }
                VisitStage::Pending(pending) => pending.attempt = 1,
                _ => {}
            }
        }
    }
}

struct Committed {
    route: Route,
    action: Option<String>,
    warnings: Vec<TurnWarning>,
}

/// Value of the port `error`.
fn error_port(error: &FlowError) -> Value {
    json!({"code": error.code, "nodeId": error.node_id, "message": error.message})
}

/// Output that a node publishes instead of a failed result.
fn default_completion(flow: &CompiledFlow, node: NodeIndex, value: &Value) -> Completion {
    super::agent_output::published(&flow.nodes[node].driver, value)
}

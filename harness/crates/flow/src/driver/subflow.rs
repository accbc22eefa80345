//! A visit of `control.subflow`: a run of another flow within the run.

use deerflow_runtime::runs::NodeSelector;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::attempt::{Attempt, AttemptReport, Level, RunScope};
use super::deps::{FlowOptions, FlowOutcome, FlowPorts};
use super::nested_level::NestedLevel;
use crate::adapter::{ErrorCategory, FlowError};
use crate::compiled::SubflowNode;
use crate::machine::{AttemptOutcome, Completion, RunBounds};

/// Runs a sub-flow. Its failure has the code of the inner error and the id of this node.
pub(super) fn run_subflow<'a>(
    scope: &'a RunScope<'_>,
    attempt: &'a Attempt,
    node: &'a SubflowNode,
    cancel: &'a CancellationToken,
    report: &'a mut AttemptReport,
) -> BoxFuture<'a, AttemptOutcome> {
    Box::pin(async move {
        match run(scope, attempt, node, cancel, report).await {
            Ok(outcome) => outcome,
            Err(error) => Err(error).into(),
        }
    })
}

async fn run(
    scope: &RunScope<'_>,
    attempt: &Attempt,
    node: &SubflowNode,
    cancel: &CancellationToken,
    report: &mut AttemptReport,
) -> Result<AttemptOutcome, FlowError> {
    let limit = scope.options.max_subflow_depth;
    if scope.depth >= limit {
        let message = format!("sub-flows are nested deeper than {limit}");
        return Err(FlowError::new(
            "subflow_depth",
            ErrorCategory::Engine,
            message,
        ));
    }
    let flow = match &scope.ports.flows {
        Some(flows) => flows.get(&node.flow_id).await?,
        None => None,
    };
    let Some(flow) = flow else {
        let message = format!("there is no flow {:?}", node.flow_id);
        return Err(FlowError::new(
            "subflow_not_found",
            ErrorCategory::Engine,
            message,
        ));
    };
    let options = FlowOptions {
        bounds: RunBounds {
            interrupt_before: NodeSelector::None,
            interrupt_after: NodeSelector::None,
            ..scope.options.bounds.clone()
        },
        cancel: cancel.clone(),
        ..scope.options.clone()
    };
    let mut level = NestedLevel::start(scope, attempt, &flow, &options)?;
    let node = &scope.flow.nodes[attempt.node].id;
    let prefix = format!("{}/", scope.emitter.node_id(node));
    let nested = level.observed(scope, attempt, &flow, &prefix);
    let options = level.options(scope, attempt, options, nested.is_some());
    let ports = nested.as_ref().map(|nested| FlowPorts {
        events: nested.events.clone(),
        hooks: nested.hooks.clone(),
        ..scope.ports.clone()
    });
    let end = (scope.run_nested)(Level {
        flow: &flow,
        start: level.start,
        options: &options,
        ports: ports.as_ref().unwrap_or(scope.ports),
        prefix,
        depth: scope.depth + 1,
        seed: attempt.task_id,
        is_observed: nested.is_some(),
    })
    .await;
    if let Some(nested) = nested {
        nested.hooks.level_ended();
    }
    report.nested = Some(end.machine.ledger().run.clone());
    Ok(match end.outcome {
        FlowOutcome::Finished(result) => Ok(completion(result)).into(),
        FlowOutcome::Failed(error) => Err(error).into(),
        FlowOutcome::Cancelled => AttemptOutcome::Cancelled,
        FlowOutcome::Interrupted(inner) => AttemptOutcome::Asked {
            question: None,
            inner,
            nested: Some(json!({
                "machine": end.machine,
                "data": end.data.channels(&flow),
                "histories": end.histories,
            })),
        },
        FlowOutcome::Breakpoint(_) => {
            let message = "a sub-flow stopped at a breakpoint";
            return Err(FlowError::new(
                "state_unreadable",
                ErrorCategory::Engine,
                message,
            ));
        }
    })
}

/// Returns what a sub-flow's result publishes: its text, and the value itself unless it is text.
fn completion(result: Option<Value>) -> Completion {
    match result {
        None | Some(Value::Null) => Completion::text(""),
        Some(Value::String(text)) => Completion::text(text),
        Some(value) => Completion {
            ports: [("result".to_owned(), value.clone())].into(),
            ..Completion::text(value.to_string())
        },
    }
}

//! A visit of `control.subflow`: a run of another flow within the run.

use deerflow_runtime::runs::NodeSelector;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::attempt::{Attempt, AttemptReport, Level, RunScope};
use super::deps::{FlowOptions, FlowOutcome, FlowStart};
use super::history::Histories;
use crate::adapter::{ErrorCategory, FlowError};
use crate::compiled::{CompiledFlow, SubflowNode};
use crate::machine::{AttemptOutcome, Completion, FlowMachine, RunBounds, RunData};
use crate::prompt::input_text;

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
        histories: saved_histories(attempt.nested.as_ref()),
        ..scope.options.clone()
    };
    let start = match &attempt.nested {
        Some(saved) => resumed(scope, &flow, saved, attempt.answer.clone(), &options)?,
        None => {
            let prompt = input_text(scope.input.user_prompt(), &attempt.input);
            FlowStart::Fresh(scope.input.with_prompt(&prompt))
        }
    };
    let prefix = format!(
        "{}/",
        scope.emitter.node_id(&scope.flow.nodes[attempt.node].id)
    );
    let level = Level {
        flow: &flow,
        start,
        options: &options,
        ports: scope.ports,
        prefix,
        depth: scope.depth + 1,
        seed: attempt.task_id,
    };
    let end = (scope.run_nested)(level).await;
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

/// Returns the histories of a sub-flow that is continued; a new one has none.
fn saved_histories(saved: Option<&Value>) -> Histories {
    let saved = saved.map(|saved| saved["histories"].clone());
    serde_json::from_value(saved.unwrap_or(json!({}))).unwrap_or_else(|error| {
        tracing::warn!(%error, "histories of a sub-flow are unreadable; agents begin without them");
        Histories::default()
    })
}

fn resumed(
    scope: &RunScope<'_>,
    flow: &CompiledFlow,
    saved: &Value,
    answers: Option<Value>,
    options: &FlowOptions,
) -> Result<FlowStart, FlowError> {
    let mut machine = FlowMachine::restore(flow, options.bounds.clone(), saved["machine"].clone())?;
    let no_channels = Map::new();
    let data = RunData::restore(flow, saved["data"].as_object().unwrap_or(&no_channels))?;
    machine.begin_run(scope.emitter.now_ms());
    if let Some(answers) = answers {
        machine.answer(answers)?;
    }
    Ok(FlowStart::Resumed(Box::new(machine), Box::new(data)))
}

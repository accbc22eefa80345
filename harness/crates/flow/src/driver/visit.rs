//! One attempt of a visit.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use deerflow_core::tasks::panic_text;
use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;

use super::attempt::{Attempt, AttemptEnd, AttemptReport, RunScope};
use super::deps::{LoadRequest, TextRequest, VisitTask};
use super::subflow::run_subflow;
use super::turn::run_turn;
use crate::adapter::{ErrorCategory, FlowError};
use crate::compiled::{Driver, LoaderKind, LoaderNode, PromptNode};
use crate::events::EventBody;
use crate::machine::{AttemptOutcome, Completion, prompt_completion};

/// Runs an attempt. A panic of the node is a failure. `cancel` ends it, with the abort of an open
/// turn.
pub(super) async fn run_attempt(
    scope: &RunScope<'_>,
    mut attempt: Attempt,
    cancel: &CancellationToken,
) -> AttemptEnd {
    let started = tokio::time::Instant::now();
    let mut report = AttemptReport::default();
    let execution = execute(scope, &mut attempt, cancel, &mut report);
    let outcome = AssertUnwindSafe(execution)
        .catch_unwind()
        .await
        .unwrap_or_else(|panic| {
            let node = &scope.flow.nodes[attempt.node].id;
            let text = panic_text(panic.as_ref());
            tracing::error!(%node, panic = %text, "node panicked");
            let message = format!("node {node:?} failed unexpectedly (panic): {text}");
            let code = "node_panicked";
            Err(FlowError::new(code, ErrorCategory::Engine, message)).into()
        });
    report.duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    AttemptEnd {
        attempt,
        outcome,
        report,
    }
}

async fn execute(
    scope: &RunScope<'_>,
    attempt: &mut Attempt,
    cancel: &CancellationToken,
    report: &mut AttemptReport,
) -> AttemptOutcome {
    let node = &scope.flow.nodes[attempt.node];
    if attempt.delay_ms > 0 {
        let delay = tokio::time::sleep(Duration::from_millis(attempt.delay_ms));
        tokio::select! {
            biased;
            () = cancel.cancelled() => return AttemptOutcome::Cancelled,
            () = delay => {}
        }
    }
    if attempt.number == 1 {
        announce(scope, attempt);
    }
    if let Some(outcome) = attempt.decided.take() {
        return outcome;
    }
    let result = match &node.driver {
        Driver::Agent(agent) => return run_turn(scope, attempt, agent, cancel, report).await,
        Driver::Subflow(subflow) => {
            return run_subflow(scope, attempt, subflow, cancel, report).await;
        }
        Driver::Loader(loader) => {
            let load = load(scope, &node.id, loader);
            tokio::select! {
                biased;
                () = cancel.cancelled() => return AttemptOutcome::Cancelled,
                result = load => result,
            }
        }
        Driver::Prompt(prompt) => {
            let read = read_prompt(scope, prompt);
            tokio::select! {
                biased;
                () = cancel.cancelled() => return AttemptOutcome::Cancelled,
                result = read => result,
            }
        }
        _ => Ok(Completion::default()),
    };
    result.into()
}

fn announce(scope: &RunScope<'_>, attempt: &Attempt) {
    let node = &scope.flow.nodes[attempt.node];
    scope.emitter.node(&node.id, || EventBody::NodeStarted {
        kind: node.kind.clone(),
        visit: attempt.visit,
        inputs: attempt.input.ports.clone(),
    });
    if scope.is_observed {
        scope.ports.hooks.task_started(VisitTask {
            task_id: attempt.task_id,
            node_id: &node.id,
            sources: &attempt.sources,
            input: &attempt.input.ports,
        });
    }
}

/// Loads documents. Without a loader for the kind the node publishes the input of the run.
async fn load(
    scope: &RunScope<'_>,
    node_id: &str,
    node: &LoaderNode,
) -> Result<Completion, FlowError> {
    let is_input = matches!(node.kind, LoaderKind::Input | LoaderKind::Custom);
    let loader = scope
        .ports
        .loader
        .as_ref()
        .filter(|_| !is_input && !scope.options.dry_run);
    let of_project = node.documents.as_ref().filter(|_| !scope.options.dry_run);
    let loaded = match loader {
        _ if of_project.is_some() => of_project.cloned(),
        Some(loader) => {
            let request = LoadRequest {
                node_id,
                kind: node.kind,
                config: &node.config,
                input: &scope.input,
                actor: &scope.options.actor,
                context: scope.options.context.as_ref(),
            };
            loader.load(request).await?
        }
        None => None,
    };
    let data = loaded.or_else(|| scope.input.documents());
    let ports = data
        .map(|data| ("data".to_owned(), data))
        .into_iter()
        .collect();
    Ok(Completion {
        ports,
        ..Completion::default()
    })
}

/// Reads the file of a prompt node. A dry run reads none.
async fn read_prompt(scope: &RunScope<'_>, node: &PromptNode) -> Result<Completion, FlowError> {
    let path = node.file.as_deref().unwrap_or_default();
    if scope.options.dry_run {
        return Ok(prompt_completion(&node.merge.merge(&node.text, path)));
    }
    let Some(loader) = &scope.ports.loader else {
        let message = format!("nothing reads files here; the node needs the text of {path:?}");
        return Err(FlowError::new(
            "loader_failed",
            ErrorCategory::Engine,
            message,
        ));
    };
    let request = TextRequest {
        path,
        actor: &scope.options.actor,
        context: scope.options.context.as_ref(),
    };
    let text = loader.read_text(request).await?;
    Ok(prompt_completion(&node.merge.merge(&node.text, &text)))
}

//! A run of a flow from its start to its end.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use deerflow_core::tasks::panic_text;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::attempt::{Level, RunScope};
use super::deps::{FlowEnd, FlowOptions, FlowOutcome, FlowPorts, FlowStart, Progress};
use super::emitter::Emitter;
use super::sessions::SessionPool;
use super::step::StepDriver;
use crate::adapter::{ErrorCategory, FlowError};
use crate::compiled::CompiledFlow;
use crate::events::EventBody;
use crate::machine::{Decision, FlowMachine, RunData, RunInput};

/// Runs a flow until it completes, fails, stops at a question or breakpoint, or is cancelled.
/// Sessions are disposed at every end. All work happens in the caller's task: dropping the future
/// stops it, without disposal.
pub async fn run_flow(
    flow: &Arc<CompiledFlow>,
    start: FlowStart,
    options: &FlowOptions,
    ports: &FlowPorts,
) -> FlowEnd {
    let level = Level {
        flow,
        start,
        options,
        ports,
        prefix: String::new(),
        depth: 0,
        seed: ports.ids.random(),
        is_observed: true,
    };
    run_level(level).await
}

async fn run_level(level: Level<'_>) -> FlowEnd {
    let Level {
        flow,
        start,
        options,
        ports,
        prefix,
        depth,
        seed,
        is_observed,
    } = level;
    let emitter = Emitter::new(ports, options.run_id.clone(), prefix);
    let (mut machine, mut data) = match start {
        FlowStart::Fresh(input) => {
            emitter.run(None, || started(flow, &input));
            let bounds = options.bounds.clone();
            let machine = FlowMachine::new(flow, bounds, seed, emitter.now_ms());
            (machine, RunData::new(flow, input))
        }
        FlowStart::Prepared(machine, data) => {
            emitter.run(None, || started(flow, data.input()));
            (*machine, *data)
        }
        FlowStart::Resumed(machine, data) => {
            let node = machine
                .next_nodes()
                .first()
                .map(|node| &*flow.nodes[*node].id);
            emitter.run(node, || EventBody::RunResumed {
                content_hash: flow.content_hash.clone(),
            });
            (*machine, *data)
        }
        FlowStart::TakenOver(machine, data) => (*machine, *data),
    };
    let scope = RunScope {
        flow,
        ports,
        options,
        emitter,
        sessions: SessionPool::new(&machine, &options.histories),
        input: data.input().clone(),
        depth,
        run_nested,
        is_observed,
    };
    let steps = AssertUnwindSafe(run_steps(&scope, &mut machine, &mut data)).catch_unwind();
    let outcome = steps.await.unwrap_or_else(|panic| {
        let text = panic_text(panic.as_ref());
        tracing::error!(panic = %text, "engine panicked");
        let message = format!("the engine failed unexpectedly (panic): {text}");
        FlowOutcome::Failed(FlowError::new(
            "engine_panicked",
            ErrorCategory::Engine,
            message,
        ))
    });
    let histories = scope.sessions.end(flow, ports, options, &mut machine).await;
    announce_end(&scope, &machine, &outcome);
    FlowEnd {
        outcome,
        machine,
        data,
        histories,
    }
}

fn started(flow: &CompiledFlow, input: &RunInput) -> EventBody {
    EventBody::RunStarted {
        input: input.keys(),
        content_hash: flow.content_hash.clone(),
    }
}

fn run_nested(level: Level<'_>) -> BoxFuture<'_, FlowEnd> {
    Box::pin(run_level(level))
}

async fn run_steps(
    scope: &RunScope<'_>,
    machine: &mut FlowMachine,
    data: &mut RunData,
) -> FlowOutcome {
    let cancel = &scope.options.cancel;
    loop {
        let positions = match machine.next(scope.flow) {
            Decision::Finished => return FlowOutcome::Finished(data.result()),
            // A flow without a further node completes in spite of a cancel.
            _ if cancel.is_cancelled() => return FlowOutcome::Cancelled,
            Decision::Run(positions) => positions,
            Decision::Breakpoint(node) => return FlowOutcome::Breakpoint(node),
            Decision::Interrupted(questions) => return FlowOutcome::Interrupted(questions),
            Decision::Failed(error) => return FlowOutcome::Failed(error),
        };
        let mut step = StepDriver::new(scope, machine, data);
        step.run(&positions).await;
        let changed = std::mem::take(&mut step.changed);
        if machine.step_complete() {
            for edge in machine.end_step(scope.flow, data) {
                let id = |node: usize| scope.emitter.node_id(&scope.flow.nodes[node].id);
                scope
                    .emitter
                    .node(&scope.flow.nodes[edge.from].id, || EventBody::EdgeTaken {
                        from: id(edge.from),
                        to: id(edge.to),
                        handle: edge.handle.as_deref().map(str::to_owned),
                    });
            }
        }
        if scope.is_observed {
            let flow = scope.flow;
            scope.ports.hooks.superstep(Progress {
                flow,
                machine,
                data,
                changed: &changed,
            });
        }
    }
}

fn announce_end(scope: &RunScope<'_>, machine: &FlowMachine, outcome: &FlowOutcome) {
    let emitter = &scope.emitter;
    match outcome {
        FlowOutcome::Finished(result) => emitter.run(None, || EventBody::RunCompleted {
            result: result.clone(),
            steps: machine.steps_of_run(),
        }),
        FlowOutcome::Failed(error) => {
            emitter.run(error.node_id.as_deref(), || {
                EventBody::RunFailed(error.clone())
            });
        }
        FlowOutcome::Cancelled => emitter.run(None, || EventBody::RunCancelled),
        FlowOutcome::Breakpoint(node) => {
            let node = &*scope.flow.nodes[*node].id;
            emitter.run(Some(node), || EventBody::RunInterrupted(Vec::new()));
        }
        FlowOutcome::Interrupted(questions) => {
            let node = questions.first().map(|question| question.node.as_str());
            emitter.run(node, || {
                let values = questions.iter().map(|question| serde_json::json!(question));
                EventBody::RunInterrupted(values.collect())
            });
        }
    }
}

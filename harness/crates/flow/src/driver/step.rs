//! One superstep: runs its visits up to the limit at once, and commits them in activation order.

use std::collections::VecDeque;

use futures_util::future::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio_util::sync::CancellationToken;

use super::attempt::{Attempt, AttemptEnd, AttemptReport, RunScope};
use super::deps::Progress;
use super::visit::run_attempt;
use crate::compiled::{Driver, NodeIndex};
use crate::events::EventBody;
use crate::machine::{
    Applied, AttemptOutcome, Commit, CommitEnd, FlowMachine, NodeInput, RunData, VisitStage,
    node_input,
};

/// Drives one superstep.
pub(super) struct StepDriver<'a, 'r> {
    scope: &'a RunScope<'r>,
    machine: &'a mut FlowMachine,
    data: &'a mut RunData,
    /// Duration of the attempts by position.
    durations: Vec<u64>,
    /// Nodes whose values changed in this step.
    pub(super) changed: Vec<NodeIndex>,
    failed: bool,
}

impl<'a, 'r> StepDriver<'a, 'r> {
    pub(super) fn new(
        scope: &'a RunScope<'r>,
        machine: &'a mut FlowMachine,
        data: &'a mut RunData,
    ) -> Self {
        let durations = vec![0; machine.active().len()];
        Self {
            scope,
            machine,
            data,
            durations,
            changed: Vec::new(),
            failed: false,
        }
    }

    /// Runs these visits. An unhandled failure and a cancel stop all of them; what has a result is
    /// committed.
    pub(super) async fn run(&mut self, positions: &[usize]) {
        let scope = self.scope;
        let limit = scope
            .flow
            .limits
            .max_concurrency
            .clamp(1, scope.options.max_concurrency.max(1));
        let stop = scope.options.cancel.child_token();
        let mut queue: VecDeque<Attempt> = positions
            .iter()
            .map(|position| self.attempt(*position))
            .collect();
        let mut running = FuturesUnordered::new();
        loop {
            // Starts one visit at a time and takes what is ready at once, so that the trace of
            // visits that never wait is in activation order whatever the limit is.
            let is_stopping = self.failed || stop.is_cancelled();
            let next = if is_stopping || running.len() >= limit {
                None
            } else {
                queue.pop_front()
            };
            let starts = next.is_some();
            if let Some(attempt) = next {
                let attempt = self.prepare(attempt);
                running.push(run_attempt(scope, attempt, &stop));
            }
            let ended = if starts {
                running.next().now_or_never()
            } else {
                Some(running.next().await)
            };
            match ended {
                None => {}
                Some(None) if queue.is_empty() || is_stopping => break,
                Some(None) => {}
                Some(Some(end)) => {
                    if let Some(retry) = self.settle(end, &stop) {
                        running.push(run_attempt(scope, retry, &stop));
                    }
                }
            }
        }
        drop(running);
        self.commit(true);
    }

    fn attempt(&mut self, position: usize) -> Attempt {
        let (flow, machine) = (self.scope.flow, &*self.machine);
        let visit = &machine.active()[position];
        let needs_input = matches!(
            flow.nodes[visit.node].driver,
            Driver::Agent(_) | Driver::Subflow(_) | Driver::Finish(_) | Driver::PlanLoop(_)
        );
        let input = if needs_input {
            node_input(flow, self.data, visit)
        } else {
            NodeInput::default()
        };
        let mut attempt = Attempt::of(visit, position, machine.task_id(flow, visit.node), input);
        if let VisitStage::Pending(pending) = &visit.stage {
            attempt.answer.clone_from(&pending.answer);
            attempt.nested.clone_from(&pending.nested);
        }
        attempt
    }

    /// Lets the machine decide what needs no effect, and checks the budgets of a turn.
    fn prepare(&mut self, mut attempt: Attempt) -> Attempt {
        let flow = self.scope.flow;
        if self.scope.options.dry_run {
            self.machine.answer_by_default(flow, attempt.position);
        }
        attempt.decided = self.machine.decide(flow, self.data, attempt.position);
        if attempt.decided.is_none() {
            let now_ms = self.scope.emitter.now_ms();
            if let Err(error) = self.machine.begin_turn(flow, attempt.node, now_ms) {
                attempt.decided = Some(Err(error).into());
            }
        }
        attempt
    }

    /// Applies the end of an attempt. Returns the attempt that follows.
    fn settle(&mut self, end: AttemptEnd, stop: &CancellationToken) -> Option<Attempt> {
        let AttemptEnd {
            attempt,
            mut outcome,
            report,
        } = end;
        let (scope, flow) = (self.scope, self.scope.flow);
        scope.sessions.save_changes(self.machine);
        self.durations[attempt.position] += report.duration_ms;
        self.account(attempt.node, &report);
        if let AttemptOutcome::Failed(error) = &mut outcome
            && stop.is_cancelled()
            && error.retryable
        {
            error.retryable = false;
        }
        match self
            .machine
            .apply(flow, attempt.position, outcome, || jitter(scope))
        {
            Applied::Retry {
                attempt: number,
                delay_ms,
            } => {
                let node = &flow.nodes[attempt.node].id;
                scope.emitter.node(node, || EventBody::NodeRetry {
                    attempt: number,
                    delay_ms,
                });
                let attempt = Attempt {
                    number,
                    delay_ms,
                    ..attempt
                };
                return Some(self.prepare(attempt));
            }
            Applied::Fatal => {
                self.failed = true;
                stop.cancel();
            }
            Applied::Stored => {}
            Applied::Open => self.task_asked(attempt.position),
        }
        self.commit(false);
        if !self.machine.step_complete() && scope.is_observed {
            scope.ports.hooks.amended(self.progress());
        }
        None
    }

    fn account(&mut self, node: NodeIndex, report: &AttemptReport) {
        let flow = self.scope.flow;
        let id = &flow.nodes[node].id;
        if report.is_turn
            && self
                .machine
                .end_turn(flow, node, &report.usage, report.duration_ms)
        {
            self.warn(
                id,
                "cost_not_counted",
                "the turn states no cost, so the budget ignores it",
            );
        }
        if let Some(totals) = &report.nested {
            self.machine.add_nested(node, totals);
        }
        if let Some(proposal) = &report.proposal
            && let Some(decision) = self.machine.decide_delegation(flow, node, proposal)
        {
            let emitter = &self.scope.emitter;
            emitter.node(id, || {
                EventBody::DelegationResolved(decision.to_value(proposal))
            });
            self.warn(
                id,
                "delegation_not_executed",
                "a proposal of delegation was not executed",
            );
        }
    }

    fn warn(&self, node: &str, code: &str, message: &str) {
        self.scope.emitter.node(node, || EventBody::Warning {
            code: code.to_owned(),
            message: message.to_owned(),
        });
    }

    fn commit(&mut self, all: bool) {
        while let Some(commit) = self.machine.commit(self.scope.flow, self.data, all) {
            self.failed |= matches!(commit.end, CommitEnd::Failed(_));
            self.changed.push(commit.node);
            self.publish(&commit);
        }
    }

    fn publish(&self, commit: &Commit) {
        let (scope, flow) = (self.scope, self.scope.flow);
        let node = &flow.nodes[commit.node].id;
        for warning in &commit.warnings {
            self.warn(node, &warning.code, &warning.message);
        }
        let visit = commit.visit;
        let duration_ms = self.durations[commit.position];
        let failed = |error: &crate::adapter::FlowError, handled| EventBody::NodeFailed {
            visit,
            error: error.clone(),
            handled,
            duration_ms,
        };
        scope.emitter.node(node, || match &commit.end {
            CommitEnd::Completed(action) => EventBody::NodeCompleted {
                visit,
                action: action.clone(),
                ports: self.data.published(commit.node),
                duration_ms,
            },
            CommitEnd::Handled(error) => failed(error, true),
            CommitEnd::Failed(error) => failed(error, false),
        });
        if scope.is_observed {
            let progress = Progress {
                changed: &[commit.node],
                ..self.progress()
            };
            scope.ports.hooks.task_ended(progress, commit.node, &[]);
        }
    }

    fn task_asked(&self, position: usize) {
        let Some(visit) = self.machine.active().get(position) else {
            return;
        };
        if let VisitStage::Asking(asking) = &visit.stage
            && self.scope.is_observed
        {
            let progress = Progress {
                changed: &[],
                ..self.progress()
            };
            self.scope
                .ports
                .hooks
                .task_ended(progress, visit.node, &asking.questions);
        }
    }

    fn progress(&self) -> Progress<'_> {
        Progress {
            flow: self.scope.flow,
            machine: self.machine,
            data: self.data,
            changed: &self.changed,
        }
    }
}

/// Returns a random number from 0 to 1.
fn jitter(scope: &RunScope<'_>) -> f64 {
    let bytes = scope.ports.ids.random();
    f64::from(bytes.as_bytes()[0]) / 255.0
}

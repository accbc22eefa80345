//! A turn of an agent: session, prompt, time limit, cancel, and the events of the turn.

use std::time::Duration;

use deerflow_runtime::checkpoint::NestedState;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::attempt::{Attempt, AttemptReport, RunScope};
use super::deps::{FlowOptions, RunHooks};
use super::emitter::TurnSink;
use super::history::{add_turn, messages_of};
use super::sessions::{AgentSlot, GRACE, OpenTurn};
use crate::adapter::{
    AgentAdapter, AgentInvocation, AgentTurnResult, ErrorCategory, FlowError, InvocationId,
    SESSION_NOT_FOUND, SessionId, TurnEffect, TurnRuntime, TurnStatus,
};
use crate::compiled::AgentNode;
use crate::events::EventBody;
use crate::machine::{AttemptOutcome, turn_completion};
use crate::prompt::{assemble, expected_output};

/// Runs a turn of an agent node. Turns of one session wait for each other.
pub(super) async fn run_turn(
    scope: &RunScope<'_>,
    attempt: &Attempt,
    node: &AgentNode,
    cancel: &CancellationToken,
    report: &mut AttemptReport,
) -> AttemptOutcome {
    let slot = scope.sessions.slot(&node.agent.agent_id);
    let mut slot = tokio::select! {
        biased;
        () = cancel.cancelled() => return AttemptOutcome::Cancelled,
        slot = slot.lock() => slot,
    };
    report.is_turn = true;
    let mut retried = false;
    loop {
        let opening = open_session(scope, &mut slot, node);
        let opened = tokio::select! {
            biased;
            () = cancel.cancelled() => return AttemptOutcome::Cancelled,
            opened = opening => opened,
        };
        let (adapter, session) = match opened {
            Ok(opened) => opened,
            Err(error) => return Err(of_agent(error, node)).into(),
        };
        let turn = Turn {
            scope,
            attempt,
            node,
            adapter: &*adapter,
            session,
        };
        let Some(result) = turn.run(&mut slot, cancel, retried).await else {
            return AttemptOutcome::Cancelled;
        };
        let is_lost = result
            .error
            .as_ref()
            .is_some_and(|error| error.code == SESSION_NOT_FOUND);
        if is_lost && !retried {
            retried = true;
            scope
                .sessions
                .close(&mut slot, &open_turn(scope, node))
                .await;
            continue;
        }
        report.usage = result.usage.clone();
        report.proposal.clone_from(&result.delegation_proposal);
        return outcome(node, result);
    }
}

fn open_turn<'a>(scope: &'a RunScope<'_>, node: &'a AgentNode) -> OpenTurn<'a> {
    OpenTurn {
        flow: scope.flow,
        ports: scope.ports,
        options: scope.options,
        node,
        now_ms: scope.emitter.now_ms(),
    }
}

async fn open_session(
    scope: &RunScope<'_>,
    slot: &mut AgentSlot,
    node: &AgentNode,
) -> Result<(std::sync::Arc<dyn AgentAdapter>, SessionId), FlowError> {
    scope.sessions.open(slot, open_turn(scope, node)).await
}

fn outcome(node: &AgentNode, result: AgentTurnResult) -> AttemptOutcome {
    match (result.status, &result.interrupt) {
        (TurnStatus::Completed, _) => Ok(turn_completion(node, result)).into(),
        (TurnStatus::Interrupted, Some(question)) => AttemptOutcome::Asked {
            question: Some(question.clone()),
            inner: Vec::new(),
            nested: None,
        },
        _ => Err(of_agent(error_of(&result), node)).into(),
    }
}

/// Returns the error of a turn, or the default one of its status.
fn error_of(result: &AgentTurnResult) -> FlowError {
    if let Some(error) = &result.error {
        return error.clone();
    }
    let (code, message, retryable) = match result.status {
        TurnStatus::TimedOut => ("turn_timeout", "the turn exceeded its time limit", true),
        TurnStatus::Blocked => ("turn_blocked", "a policy refused the turn", false),
        TurnStatus::Interrupted => ("turn_interrupted", "the turn was interrupted", false),
        TurnStatus::Failed | TurnStatus::Completed => ("turn_failed", "the turn failed", false),
    };
    FlowError::new(code, ErrorCategory::Adapter, message).retryable(retryable)
}

fn of_agent(error: FlowError, node: &AgentNode) -> FlowError {
    FlowError {
        agent_id: Some(node.agent.agent_id.clone()),
        adapter_kind: Some(node.agent.adapter_kind.clone()),
        ..error
    }
}

/// A turn with its session.
struct Turn<'a> {
    scope: &'a RunScope<'a>,
    attempt: &'a Attempt,
    node: &'a AgentNode,
    adapter: &'a dyn AgentAdapter,
    session: SessionId,
}

impl Turn<'_> {
    /// Runs the turn. `None` if it was cancelled.
    async fn run(
        &self,
        slot: &mut AgentSlot,
        cancel: &CancellationToken,
        repeated: bool,
    ) -> Option<AgentTurnResult> {
        let invocation = self.invocation(slot, repeated);
        let id = invocation.invocation_id.clone();
        let emitter = &self.scope.emitter;
        let node_id = &*self.scope.flow.nodes[self.attempt.node].id;
        let sink = TurnSink {
            emitter,
            node: node_id,
            agent: &self.node.agent.agent_id,
            invocation: &id,
            hook_node: &self.scope.hook_node(node_id),
        };
        emitter.turn(&sink, || EventBody::AgentSelected {
            adapter_kind: self.node.agent.adapter_kind.clone(),
            turn_mode: self.node.turn_mode,
            session_reused: !slot.is_new,
            prompt: invocation.segments.clone(),
        });
        slot.is_new = false;
        let user = invocation.user_prompt.clone();
        let started = tokio::time::Instant::now();
        let result = self.call(invocation, &sink, cancel).await?;
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.report(&sink, &result, duration_ms);
        if result.status == TurnStatus::Completed {
            let agent = &self.node.agent;
            let turn = add_turn(agent, &mut slot.history, user, result.final_text.clone());
            if let Some(turn) = turn.filter(|_| self.scope.is_observed) {
                let (hooks, length) = (&self.scope.ports.hooks, slot.history.len());
                hooks.turn_added(&agent.agent_id, turn, length);
            }
        }
        Some(result)
    }

    /// Calls the adapter within the time limit. A cancelled turn and one that exceeds its limit are
    /// aborted at the other side.
    async fn call(
        &self,
        invocation: AgentInvocation,
        sink: &TurnSink<'_>,
        cancel: &CancellationToken,
    ) -> Option<AgentTurnResult> {
        let hooks: &dyn RunHooks = &*self.scope.ports.hooks;
        let id = invocation.invocation_id.clone();
        let effect = self.adapter.effect();
        if effect != TurnEffect::Pure {
            match hooks.turn_starts(&id, effect).await {
                Ok(None) => {}
                Ok(Some(recorded)) => return Some(recorded),
                Err(error) => {
                    self.abort(&id).await;
                    return Some(AgentTurnResult::ended(TurnStatus::Failed, error));
                }
            }
        }
        let stop = cancel.child_token();
        let limit = self.node.turn_limit_ms.map(Duration::from_millis);
        let runtime = TurnRuntime {
            context: self.scope.options.context.clone(),
            namespace: self.namespace(),
            nested: self.saved_agent(),
            deadline: limit.map(|limit| tokio::time::Instant::now() + limit),
        };
        let turn = self
            .adapter
            .run_turn(invocation, runtime, sink, stop.clone());
        let limited = async {
            match limit {
                Some(limit) => tokio::time::timeout(limit, turn).await.ok(),
                None => Some(turn.await),
            }
        };
        let result = tokio::select! {
            biased;
            () = cancel.cancelled() => {
                self.abort(&id).await;
                return None;
            }
            result = limited => result,
        };
        let result = result.unwrap_or_else(|| {
            stop.cancel();
            let limit = self.node.turn_limit_ms.unwrap_or_default();
            let message = format!("the turn exceeded its limit of {limit} ms");
            let error = FlowError::new("turn_timeout", ErrorCategory::Adapter, message);
            AgentTurnResult::ended(TurnStatus::TimedOut, error.retryable(true))
        });
        // The adapter may notice the limit first.
        if result.status == TurnStatus::TimedOut {
            self.abort(&id).await;
        }
        if effect != TurnEffect::Pure {
            hooks.turn_ends(&id, &result).await;
        }
        Some(result)
    }

    async fn abort(&self, id: &InvocationId) {
        match tokio::time::timeout(GRACE, self.adapter.abort(id)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%id, code = %error.code, "turn could not be aborted"),
            Err(_) => tracing::warn!(%id, "turn was not aborted in time"),
        }
    }

    fn report(&self, sink: &TurnSink<'_>, result: &AgentTurnResult, duration_ms: u64) {
        let is_question = result.status == TurnStatus::Interrupted && result.interrupt.is_some();
        if is_question {
            return;
        }
        self.scope.emitter.turn(sink, || {
            let usage = result.usage.clone();
            if result.status == TurnStatus::Completed {
                EventBody::TurnCompleted {
                    usage,
                    structured: result.structured_output.clone(),
                    reasoning: result.reasoning_text.clone(),
                    tool_calls: result.tool_calls.clone(),
                    artifacts: result.artifacts.clone(),
                    duration_ms,
                }
            } else {
                let (status, error) = (result.status, error_of(result));
                EventBody::TurnFailed {
                    status,
                    usage,
                    error,
                    duration_ms,
                }
            }
        });
    }

    fn namespace(&self) -> String {
        let FlowOptions { context, .. } = self.scope.options;
        if context.is_none() {
            return String::new();
        }
        let node = &self.scope.flow.nodes[self.attempt.node].id;
        format!("{}:{}", self.scope.hook_node(node), self.attempt.task_id)
    }

    /// Returns the state of the turn's nested agent. A repeated turn continues at it, too.
    fn saved_agent(&self) -> Option<std::sync::Arc<NestedState>> {
        let task_id = self.attempt.task_id.to_string();
        self.scope.options.nested.get(&task_id).cloned()
    }

    fn invocation(&self, slot: &AgentSlot, repeated: bool) -> AgentInvocation {
        let (scope, attempt, node) = (self.scope, self.attempt, self.node);
        let prompt = assemble(node, scope.input.user_prompt(), &attempt.input);
        // A fork and a retry in another run have the same task. They are other turns.
        let name = format!(
            "{}:{}{}",
            scope.options.run_id,
            attempt.number,
            if repeated { "r" } else { "" }
        );
        let sends_history = !self.adapter.stores_history() || slot.is_new;
        let messages = if sends_history {
            messages_of(&node.agent, &scope.options.thread_messages, &slot.history)
        } else {
            std::sync::Arc::from([])
        };
        AgentInvocation {
            invocation_id: InvocationId(
                Uuid::new_v5(&attempt.task_id, name.as_bytes()).to_string(),
            ),
            session_id: self.session.clone(),
            run_id: scope.options.run_id.to_string(),
            flow_name: scope.flow.document.meta.name.clone(),
            node_id: scope.flow.nodes[attempt.node].id.to_string(),
            visit: attempt.visit,
            agent: node.agent.clone(),
            turn_mode: node.turn_mode,
            system_prompt: prompt.system,
            user_prompt: prompt.user,
            segments: prompt.segments.into(),
            input: attempt.input.ports.clone(),
            messages,
            expected_output: expected_output(node.output_kind),
            model: node.model.clone(),
            temperature: node.temperature,
            max_tokens: node.max_tokens,
            answer: attempt.answer.clone(),
        }
    }
}

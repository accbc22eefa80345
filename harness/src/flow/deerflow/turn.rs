//! Executes turns as nested agents.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::agents::NodeAgents;
use super::listener::TurnListener;
use super::result::{failed, failure, result_of};
use super::settings::Settings;
use super::start::{TurnStart, has_question};
use crate::flow::adapter::{
    AgentAdapter, AgentInvocation, AgentTurnResult, DeltaSink, ErrorCategory, FlowError,
    InvocationId, SessionContext, SessionId, TurnEffect, TurnRuntime, TurnStatus, TurnWarning,
};
use crate::ids::IdSource;
use crate::runtime::agent::{
    AgentEvent, EventReceiver, EventSink, NestedCall, RunContext, run_nested,
};

/// Maximum warnings about unknown tools of a turn.
const MAX_WARNINGS: usize = 16;

/// Adapter of one agent. Sessions are names only: each turn gets the messages of its session.
#[derive(Debug)]
pub(super) struct DeerflowAdapter {
    pub(super) settings: Settings,
    pub(super) agents: Arc<dyn NodeAgents>,
    pub(super) ids: Arc<dyn IdSource>,
}

#[async_trait]
impl AgentAdapter for DeerflowAdapter {
    async fn create_session(&self, _context: SessionContext) -> Result<SessionId, FlowError> {
        Ok(SessionId(self.ids.random().to_string()))
    }

    async fn run_turn(
        &self,
        invocation: AgentInvocation,
        runtime: TurnRuntime,
        sink: &dyn DeltaSink,
        cancel: CancellationToken,
    ) -> AgentTurnResult {
        let Some(context) = &runtime.context else {
            let message = "kind deerflow runs agents inside of a run, and this flow runs without \
                           the runtime; run it on a server or client";
            return failed(failure("runtime_missing", ErrorCategory::Adapter, message));
        };
        let deadline = async {
            match runtime.deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => {
                let message = "the turn was cancelled";
                failed(failure("turn_failed", ErrorCategory::Adapter, message))
            }
            () = deadline => {
                let message = "the time limit of the turn passed";
                let error = failure("turn_timeout", ErrorCategory::Adapter, message);
                AgentTurnResult::ended(TurnStatus::TimedOut, error.retryable(true))
            }
            result = self.turn(&invocation, &runtime, context, sink) => result,
        }
    }

    /// Does nothing: dropping the future of a turn stops its agent.
    async fn abort(&self, _invocation: &InvocationId) -> Result<(), FlowError> {
        Ok(())
    }

    async fn dispose(&self, _session: &SessionId) -> Result<(), FlowError> {
        Ok(())
    }

    /// A repeated turn continues the saved agent, whose calls have records of their own.
    fn effect(&self) -> TurnEffect {
        TurnEffect::Keyed
    }
}

impl DeerflowAdapter {
    async fn turn(
        &self,
        turn: &AgentInvocation,
        runtime: &TurnRuntime,
        outer: &RunContext,
        sink: &dyn DeltaSink,
    ) -> AgentTurnResult {
        let mut options = self.settings.options(&outer.options, turn);
        let found = match self.agents.agent(&self.settings.target, &options).await {
            Ok(found) => found,
            Err(error) => {
                let (code, category) = ("agent_unavailable", ErrorCategory::Adapter);
                return failed(failure(code, category, error.to_string()));
            }
        };
        // The ids are not part of the key under which the agent is cached.
        let ids = RunContext::ID_OPTIONS.into_iter();
        let ids = ids.filter_map(|key| Some((key.to_owned(), outer.options.get(key)?.clone())));
        options.extend(ids);
        let (events, received) = EventSink::channel();
        let run = RunContext {
            sink: events,
            options: Arc::new(options),
            ..outer.clone()
        };
        let limits = [self.settings.max_steps, found.max_steps];
        let mut call = NestedCall {
            run: &run,
            namespace: &runtime.namespace,
            saved: runtime.nested.as_deref(),
            answers: &[],
            max_steps: limits
                .into_iter()
                .flatten()
                .min()
                .unwrap_or(outer.recursion_limit),
        };
        let answered = call
            .listener_state()
            .and_then(|saved| usize::deserialize(saved).ok())
            .unwrap_or_default();
        let start = TurnStart::of(turn, call.saved, answered);
        let consumes = start.saved.is_some_and(has_question) && turn.answer.is_some();
        let mut listener = TurnListener::new(&*self.agents, answered + usize::from(consumes));
        call.saved = start.saved;
        call.answers = &start.answers;
        let work = run_nested(&*found.agent, start.initial, call, &mut listener);
        let ended = forwarding(work, received, sink).await;
        let result = result_of(ended, turn);
        let mut warnings = unknown_tools(&found.unknown_tools);
        warnings.extend(listener.is_cost_partial().then(cost_not_counted));
        warnings.extend(result.warnings);
        AgentTurnResult {
            usage: listener.usage(),
            warnings,
            ..result
        }
    }
}

fn unknown_tools(names: &[String]) -> Vec<TurnWarning> {
    let names = names.iter().take(MAX_WARNINGS);
    let warning = |name| TurnWarning {
        code: "unknown_tool".to_owned(),
        message: format!("no tool or group has the name {name:?}, so it is ignored"),
    };
    names.map(warning).collect()
}

fn cost_not_counted() -> TurnWarning {
    TurnWarning {
        code: "cost_not_counted".to_owned(),
        message: "some model calls of the turn have no price, so budgets count a part of its cost"
            .to_owned(),
    }
}

/// Waits for `work` and forwards the events of its agent.
async fn forwarding<T>(
    work: impl Future<Output = T>,
    mut events: EventReceiver,
    sink: &dyn DeltaSink,
) -> T {
    let forward = |event| match event {
        // The sink adds the namespace of the node's task.
        AgentEvent::Nested(_, event) => sink.event(*event),
        event => sink.event(event),
    };
    let mut work = pin!(work);
    let ended = loop {
        tokio::select! {
            biased;
            Some(event) = events.recv() => forward(event),
            ended = &mut work => break ended,
        }
    };
    while let Some(event) = events.try_recv() {
        forward(event);
    }
    ended
}

//! Executes the calls of one answer concurrently. Every call gets a result or an interrupt,
//! whatever its tool does.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use tokio::time::Instant;

use super::assembly::Assembly;
use super::at_most_once;
use super::calls::PendingCall;
use super::interrupts::{NewInterrupt, question_id};
use super::machine::ToolsDone;
use crate::messages::{Message, MessageKind, ToolCall, ToolStatus};
use crate::middlewares::ToolHandler;
use crate::runtime::agent::{
    AgentError, AgentEvent, MessageMeta, RunContext, Task, TaskEnd, TaskInput, ToolCallRecord,
};
use crate::runtime::checkpoint::NestedState;
use crate::runtime::tasks::panic_text;
use crate::state::{StateUpdate, ThreadState};
use crate::tools::{ToolContext, ToolControl, ToolError, ToolOutput, ToolRegistry};

/// Outcome of a batch.
#[derive(Debug, Default)]
pub(super) struct BatchOutcome {
    /// Updates of the calls, in call order.
    pub(super) updates: Vec<StateUpdate>,
    /// Outcome for the machine.
    pub(super) done: ToolsDone,
    /// Error with which a tool ended the run.
    pub(super) ended: Option<AgentError>,
}

impl Assembly {
    /// `true` if the tool results at the end of a conversation ended the run: a question to the
    /// user, or results that are the run's result.
    pub(super) fn ended_by_tools(&self, messages: &[Message]) -> bool {
        let results = || {
            messages
                .iter()
                .rev()
                .take_while(|message| message.tool_call_id().is_some())
        };
        let is_user_question = |message: &Message| matches!(&message.kind, MessageKind::Tool { artifact, .. } if artifact.get("human_input").is_some());
        let is_direct = |message: &Message| {
            let tool = message
                .name
                .as_deref()
                .and_then(|name| self.tools.get(name))?;
            let succeeded = matches!(
                message.kind,
                MessageKind::Tool {
                    status: ToolStatus::Success,
                    ..
                }
            );
            Some(tool.return_direct() && succeeded)
        };
        results().any(is_user_question)
            || results()
                .filter_map(is_direct)
                .reduce(|all, direct| all && direct)
                == Some(true)
    }
}

/// Outcome of one call.
struct CallOutcome {
    update: Option<StateUpdate>,
    question: Option<NewInterrupt>,
    goto_end: bool,
    /// `true` if the result is the run's result; `None` for an interrupt or an unknown tool.
    direct: Option<bool>,
    ended: Option<AgentError>,
}

/// A call and the task that executes it.
pub(super) struct CallTask {
    pub(super) call: PendingCall,
    pub(super) task: Arc<Task>,
    pub(super) meta: Arc<MessageMeta>,
    /// Saved state of the nested agent that an earlier attempt of the call started.
    pub(super) nested: Option<Arc<NestedState>>,
}

/// Executes all calls concurrently and waits for all of them.
pub(super) async fn run_batch(
    assembly: &Assembly,
    ctx: &RunContext,
    state: &Arc<ThreadState>,
    calls: Vec<CallTask>,
) -> BatchOutcome {
    for pending in &calls {
        ctx.sink.emit(AgentEvent::TaskStart(
            pending.task.clone(),
            TaskInput::Call(pending.call.call.clone()),
        ));
    }
    let run_and_report = |call: CallTask| async {
        let task = call.task.clone();
        let outcome = run_call(assembly, ctx, state, call).await;
        let update = if outcome.ended.is_some() {
            None
        } else {
            outcome.update.clone()
        };
        let interrupt = outcome.question.as_ref().map(NewInterrupt::view);
        ctx.sink.emit(AgentEvent::TaskEnd(
            task,
            TaskEnd {
                update,
                error: outcome.ended.as_ref().map(AgentError::to_string),
                interrupts: interrupt.into_iter().collect(),
            },
        ));
        outcome
    };
    let outcomes = join_all(calls.into_iter().map(run_and_report)).await;
    let mut batch = BatchOutcome::default();
    batch.done.all_return_direct = outcomes
        .iter()
        .filter_map(|outcome| outcome.direct)
        .reduce(|all, direct| all && direct);
    for outcome in outcomes {
        batch.updates.extend(outcome.update);
        batch.done.questions.extend(outcome.question);
        batch.done.goto_end |= outcome.goto_end;
        batch.ended = batch.ended.or(outcome.ended);
    }
    batch
}

async fn run_call(
    assembly: &Assembly,
    ctx: &RunContext,
    state: &Arc<ThreadState>,
    pending: CallTask,
) -> CallOutcome {
    let CallTask {
        call:
            PendingCall {
                call,
                unreadable,
                answers,
                approval,
            },
        task,
        meta,
        nested,
    } = pending;
    let earlier_answers = answers.len() + usize::from(approval.is_some());
    ctx.sink.emit(AgentEvent::ToolStart {
        call_id: call.id.clone(),
        name: call.name.clone(),
    });
    let started = Instant::now();
    let outcome = match unreadable {
        Some(reason) => Ok(ToolOutput::error(format!(
            "Error: the arguments of {} could not be read: {reason}. Write them as one JSON object and call the tool again.",
            call.name
        ))),
        None => {
            let namespace = task.namespace();
            let (call_id, key) = (call.id.clone(), at_most_once::call_key(&ctx.run_id, &task));
            let context = ToolContext {
                run: ctx.clone(),
                call_id,
                key,
                namespace,
                state: state.clone(),
                answers,
                approval,
                nested,
            };
            let handler = RegisteredTool(&assembly.tools);
            let execution = async { assembly.stack.tool(&handler).run(&call, &context).await };
            AssertUnwindSafe(execution).catch_unwind().await.unwrap_or_else(|panic| {
                let text = panic_text(panic.as_ref());
                tracing::error!(tool = %call.name, call_id = %call.id, panic = %text, "tool panicked");
                Err(ToolError::for_model(format!("Error: {} failed unexpectedly (panic): {text}", call.name)))
            })
        }
    };
    let (output, ended) = match outcome {
        Ok(output) => (output, None),
        Err(ToolError::ForModel(text)) => (ToolOutput::error(text), None),
        Err(ToolError::EndRun { name, message }) => (
            ToolOutput::error(message.clone()),
            Some(AgentError::Ended { name, message }),
        ),
    };
    let question = match &output.control {
        ToolControl::Ask(question) | ToolControl::Approve(question) => {
            Some((question_id(&task.id, earlier_answers), question))
        }
        ToolControl::AskFor { id, question } => Some((id.clone(), question)),
        ToolControl::Continue | ToolControl::End => None,
    };
    if let Some((id, question)) = question {
        let of_approval = matches!(output.control, ToolControl::Approve(_));
        let question = NewInterrupt {
            call_id: call.id.clone(),
            id,
            question: question.clone(),
            of_approval,
        };
        return CallOutcome {
            update: None,
            question: Some(question),
            goto_end: false,
            direct: None,
            ended,
        };
    }
    let goto_end = output.control == ToolControl::End;
    let direct = assembly
        .tools
        .get(&call.name)
        .map(|tool| tool.return_direct() && output.status == ToolStatus::Success);
    let message = result_message(&call, &output, ctx);
    let mut update = output.update;
    update.messages.insert(0, message.clone());
    let update = with_ids(update, ctx);
    ctx.sink.emit(AgentEvent::Message(message.clone(), meta));
    let latency_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    ctx.sink.emit(AgentEvent::ToolEnd(ToolCallRecord {
        call_id: call.id.clone(),
        name: call.name.clone(),
        message,
        latency_ms,
    }));
    CallOutcome {
        update: Some(update),
        question: None,
        goto_end,
        direct,
        ended,
    }
}

/// Assigns missing message ids, so that subscribers and the state have the same ids.
pub(super) fn with_ids(mut update: StateUpdate, ctx: &RunContext) -> StateUpdate {
    update.messages = update
        .messages
        .into_iter()
        .map(|message| message.identified(&*ctx.ids))
        .collect();
    update
}

fn result_message(call: &ToolCall, output: &ToolOutput, ctx: &RunContext) -> Message {
    Message::tool(call, output.content.clone(), output.status).with(|body| {
        body.id = Some(
            output
                .message_id
                .clone()
                .unwrap_or_else(|| ctx.ids.message_id()),
        );
        body.additional_kwargs.clone_from(&output.additional_kwargs);
        if let MessageKind::Tool { artifact, .. } = &mut body.kind {
            *artifact = output.artifact.clone();
        }
    })
}

/// Innermost handler of a tool call: the registered tool of that name.
struct RegisteredTool<'a>(&'a ToolRegistry);

impl ToolHandler for RegisteredTool<'_> {
    fn call<'a>(
        &'a self,
        call: &'a ToolCall,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        match self.0.get(&call.name) {
            Some(_)
                if self
                    .0
                    .deferred()
                    .is_some_and(|deferred| deferred.hides(&call.name, &ctx.state)) =>
            {
                let text = format!(
                    "Error: {0} is not loaded. Load it with tool_search (select:{0}), then call it.",
                    call.name
                );
                async { Err(ToolError::ForModel(text)) }.boxed()
            }
            Some(tool) => at_most_once::call_at_most_once(&**tool, call, ctx).boxed(),
            None => {
                let names: Vec<&str> = self.0.names().collect();
                let available = if names.is_empty() {
                    "there are no tools".to_owned()
                } else {
                    format!("the tools are: {}", names.join(", "))
                };
                let text = format!(
                    "Error: {:?} is not a tool; {available}. Use one of them or answer without.",
                    call.name
                );
                async { Err(ToolError::ForModel(text)) }.boxed()
            }
        }
    }
}

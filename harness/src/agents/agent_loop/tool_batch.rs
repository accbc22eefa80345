//! Makes the calls of one answer side by side. Whatever a tool does, each call gets a result or asks a question.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use tokio::time::Instant;

use super::agent::Assembly;
use super::calls::DueCall;
use super::machine::ToolsDone;
use super::once;
use super::questions::{NewQuestion, question_id};
use crate::messages::{Message, MessageKind, ToolCall, ToolStatus};
use crate::middlewares::ToolEnd;
use crate::runtime::agent::{
    AgentError, AgentEvent, MessageMeta, RunContext, Task, TaskEnd, TaskInput, ToolCallRecord,
};
use crate::runtime::checkpoint::NestedState;
use crate::runtime::tasks::panic_text;
use crate::state::{StateUpdate, ThreadState};
use crate::tools::{ToolContext, ToolControl, ToolError, ToolOutput, ToolRegistry};

/// What a batch came to.
#[derive(Debug, Default)]
pub(super) struct BatchEnd {
    /// What the calls write, in call order.
    pub(super) updates: Vec<StateUpdate>,
    /// What the machine needs to know.
    pub(super) done: ToolsDone,
    /// A tool ended the run.
    pub(super) ended: Option<AgentError>,
}

impl Assembly {
    /// Whether a conversation that ends in tool results ended with them: in a question to the user, or in results that are the
    /// run's result.
    pub(super) fn has_last_word(&self, messages: &[Message]) -> bool {
        let results = || {
            messages
                .iter()
                .rev()
                .take_while(|message| message.tool_call_id().is_some())
        };
        let is_card = |message: &Message| matches!(&message.kind, MessageKind::Tool { artifact, .. } if artifact.get("human_input").is_some());
        let is_direct = |message: &Message| {
            let tool = message
                .name
                .as_deref()
                .and_then(|name| self.tools.get(name))?;
            let well = matches!(
                message.kind,
                MessageKind::Tool {
                    status: ToolStatus::Success,
                    ..
                }
            );
            Some(tool.return_direct() && well)
        };
        results().any(is_card)
            || results()
                .filter_map(is_direct)
                .reduce(|all, direct| all && direct)
                == Some(true)
    }
}

/// What one call came to.
struct CallEnd {
    update: Option<StateUpdate>,
    question: Option<NewQuestion>,
    goto_end: bool,
    /// Whether the result is the run's result; `None` when it asked, or is no known tool.
    direct: Option<bool>,
    ended: Option<AgentError>,
}

/// A call and the task that makes it.
pub(super) struct CallTask {
    pub(super) call: DueCall,
    pub(super) task: Arc<Task>,
    pub(super) meta: Arc<MessageMeta>,
    /// The agent that the call set to work before.
    pub(super) nested: Option<Arc<NestedState>>,
}

/// Makes all calls and waits for the last of them.
pub(super) async fn run_batch(
    parts: &Assembly,
    ctx: &RunContext,
    state: &Arc<ThreadState>,
    calls: Vec<CallTask>,
) -> BatchEnd {
    for due in &calls {
        ctx.sink.emit(AgentEvent::TaskStart(
            due.task.clone(),
            TaskInput::Call(due.call.call.clone()),
        ));
    }
    let told = |call: CallTask| async {
        let task = call.task.clone();
        let end = run_call(parts, ctx, state, call).await;
        let update = if end.ended.is_some() {
            None
        } else {
            end.update.clone()
        };
        let asked = end.question.as_ref().map(NewQuestion::shown);
        ctx.sink.emit(AgentEvent::TaskEnd(
            task,
            TaskEnd {
                update,
                error: end.ended.as_ref().map(AgentError::to_string),
                interrupts: asked.into_iter().collect(),
            },
        ));
        end
    };
    let ends = join_all(calls.into_iter().map(told)).await;
    let mut batch = BatchEnd::default();
    batch.done.all_return_direct = ends
        .iter()
        .filter_map(|end| end.direct)
        .reduce(|all, direct| all && direct);
    for end in ends {
        batch.updates.extend(end.update);
        batch.done.questions.extend(end.question);
        batch.done.goto_end |= end.goto_end;
        batch.ended = batch.ended.or(end.ended);
    }
    batch
}

async fn run_call(
    parts: &Assembly,
    ctx: &RunContext,
    state: &Arc<ThreadState>,
    due: CallTask,
) -> CallEnd {
    let CallTask {
        call:
            DueCall {
                call,
                unreadable,
                answers,
                approval,
            },
        task,
        meta,
        nested,
    } = due;
    let asked_before = answers.len() + usize::from(approval.is_some());
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
            let (call_id, key) = (call.id.clone(), once::key_of(&ctx.run_id, &task));
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
            let end = Registered(&parts.tools);
            let work = async { parts.stack.tool(&end).run(&call, &context).await };
            AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|panic| {
                let text = panic_text(panic.as_ref());
                tracing::error!(tool = %call.name, call_id = %call.id, panic = %text, "a tool panicked");
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
            Some((question_id(&task.id, asked_before), question))
        }
        ToolControl::AskFor { id, question } => Some((id.clone(), question)),
        ToolControl::Continue | ToolControl::End => None,
    };
    if let Some((id, question)) = question {
        let of_approval = matches!(output.control, ToolControl::Approve(_));
        let question = NewQuestion {
            call_id: call.id.clone(),
            id,
            question: question.clone(),
            of_approval,
        };
        return CallEnd {
            update: None,
            question: Some(question),
            goto_end: false,
            direct: None,
            ended,
        };
    }
    let goto_end = output.control == ToolControl::End;
    let direct = parts
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
    CallEnd {
        update: Some(update),
        question: None,
        goto_end,
        direct,
        ended,
    }
}

/// Viewers and the state must agree on the id of every new message.
pub(super) fn with_ids(mut update: StateUpdate, ctx: &RunContext) -> StateUpdate {
    update.messages = update
        .messages
        .into_iter()
        .map(|message| with_id(message, ctx))
        .collect();
    update
}

/// The message with an id, its own if it has one.
pub(super) fn with_id(message: Message, ctx: &RunContext) -> Message {
    if message.id.is_some() {
        message
    } else {
        message.with(|body| body.id = Some(ctx.ids.message_id()))
    }
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

/// The innermost end of a tool call: the tool of that name.
struct Registered<'a>(&'a ToolRegistry);

impl ToolEnd for Registered<'_> {
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
            Some(tool) => once::make(&**tool, call, ctx).boxed(),
            None => {
                let names: Vec<&str> = self.0.names().collect();
                let known = if names.is_empty() {
                    "there are no tools".to_owned()
                } else {
                    format!("the tools are: {}", names.join(", "))
                };
                let text = format!(
                    "Error: {:?} is not a tool; {known}. Use one of them or answer without.",
                    call.name
                );
                async { Err(ToolError::ForModel(text)) }.boxed()
            }
        }
    }
}

//! The second hop: the thread's state with the input in it, and an agent that has begun.

use std::sync::Arc;

use futures_util::FutureExt;

use serde_json::Value;

use super::super::spec::{RunCommand, RunInput};
use super::end::StreamEnd;
use super::{Execution, Progress};
use crate::runtime::agent::{
    AgentInput, AgentOutcome, AgentStart, AgentStream, EventSink, InputFacts, RunContext, StopKind,
};
use crate::runtime::checkpoint::{
    CheckpointMeta, CheckpointSource, HistoryQuery, PendingTask, Snapshot,
};
use crate::runtime::compute::{Size, heavy_poll};
use crate::state::{StateUpdate, ThreadState};

/// What is due where only the input is missing.
pub(super) const START: &str = "__start__";
/// How many checkpoints are looked through for the one that follows another.
pub(super) const MOST_SUCCESSORS: usize = 1_000;

impl Execution {
    /// Loads the state, reduces the input into it, shows that, and starts the agent. The input is saved with the agent's first
    /// word, which tells what is due.
    #[tracing::instrument(name = "prepare", skip_all)]
    pub(super) async fn prepare(&mut self) -> Result<AgentStream, StreamEnd> {
        let again = self.record.attempt > 1;
        let taken_up = if again { self.take_up().await? } else { None };
        let goes_on = taken_up.is_some();
        if again {
            let from = self.progress.parent.clone();
            self.announce_going_on(from.as_ref()).await?;
        }
        let (machine, start) = match taken_up {
            Some(taken_up) => taken_up,
            None => (self.load().await?, self.take_what_is_new().await?),
        };
        heavy_poll(Size::messages(self.progress.state.messages())).await;
        if again {
            // What viewers saw of the former attempt since its last checkpoint is not so any more.
            self.encoder
                .snapshot(&self.progress.state, &mut self.frames);
        } else {
            self.encoder
                .values(&self.progress.state, &[], &mut self.frames);
        }
        self.publish_frames().await?;
        if start == AgentStart::Fresh {
            self.complete_input();
        }
        let (sink, events) = EventSink::channel();
        let ended = if goes_on {
            self.reached_its_end()
        } else {
            None
        };
        if let Some(outcome) = ended {
            return Ok(AgentStream::new(events, async { Ok(outcome) }.boxed()));
        }
        if start == AgentStart::Continue
            && self.progress.next.is_empty()
            && !self.progress.state.messages().is_empty()
        {
            // The thread is done: there is nothing to go on with, and asking the agent might begin anew.
            let done = async {
                Ok(AgentOutcome {
                    kind: StopKind::Completed,
                    stop_reason: None,
                })
            };
            return Ok(AgentStream::new(events, done.boxed()));
        }
        // The first checkpoint with the input in it is a step of its own.
        let step = self.progress.step + i64::from(self.progress.input_unsaved);
        let input = AgentInput {
            state: ThreadState::clone(&self.progress.state),
            start,
            machine,
            step,
            nested: PendingTask::nested_states(&self.progress.next),
        };
        Ok(self.plan.agent.stream(input, self.context(sink), events))
    }

    /// Reduces what the request brings, and gives how the agent begins.
    async fn take_what_is_new(&mut self) -> Result<AgentStart, StreamEnd> {
        if let RunInput::Update(update) | RunInput::Command(RunCommand { update, .. }) =
            &self.plan.input
        {
            heavy_poll(Size::messages(&update.messages)).await;
        }
        self.encoder.begin(
            self.plan.kwargs.get("input").unwrap_or(&Value::Null),
            &mut self.frames,
        );
        Ok(match self.plan.input.clone() {
            RunInput::Update(update) => {
                self.take_input(update).await?;
                AgentStart::Fresh
            }
            RunInput::Resume(answers) => AgentStart::Resume(answers),
            RunInput::Continue => AgentStart::Continue,
            RunInput::Command(RunCommand {
                resume,
                update,
                goto,
            }) => {
                self.take_update(update)?;
                match (resume, goto) {
                    (resume, visits) if !visits.is_empty() => AgentStart::Goto { resume, visits },
                    (Some(answers), _) => AgentStart::Resume(answers),
                    (None, _) => AgentStart::Continue,
                }
            }
        })
    }

    /// The checkpoint the run starts from, and where its machine stood.
    async fn load(&mut self) -> Result<Option<Value>, StreamEnd> {
        let wanted = self
            .plan
            .checkpoint
            .as_ref()
            .map(|checkpoint| &checkpoint.checkpoint_id);
        let found = self
            .read(|| self.parts.checkpointer.get(&self.plan.thread_id, wanted))
            .await?;
        let found = match found {
            Some(snapshot)
                if awaits_input(&snapshot) && !matches!(self.plan.input, RunInput::Update(_)) =>
            {
                self.with_input(snapshot).await?
            }
            found => found,
        };
        let Some(snapshot) = found else {
            if let Some(gone) = wanted {
                // It was there when the run was asked for; nothing may begin from an empty state in its stead.
                let message = format!(
                    "checkpoint {gone}, which this run was to begin at, was removed before it began"
                );
                return Err(StreamEnd::failed("CheckpointNotFoundError", message));
            }
            let log_tail = self
                .read(|| self.parts.checkpointer.log_tail(&self.plan.thread_id))
                .await?;
            self.progress = Progress {
                step: -2,
                log_tail,
                ..Progress::default()
            };
            return Ok(None);
        };
        self.heed_newest(wanted.is_some(), &snapshot.meta).await?;
        let state = Arc::new(snapshot.state);
        let found =
            (!matches!(self.plan.input, RunInput::Update(_))).then(|| snapshot.meta.clone());
        self.progress = Progress {
            before: state.clone(),
            state,
            log_tail: snapshot.log_tail,
            parent: Some(snapshot.meta.checkpoint_id),
            step: snapshot.meta.step,
            due_before: !snapshot.meta.next.is_empty(),
            next: if wanted.is_some() {
                without_ended(snapshot.meta.next)
            } else {
                snapshot.meta.next
            },
            machine: snapshot.meta.machine.clone(),
            dirty: false,
            input_unsaved: false,
            own_checkpoint: None,
            found,
        };
        Ok(snapshot.meta.machine)
    }

    /// The next checkpoint is to be the thread's newest, whatever clock made the last one.
    async fn heed_newest(&self, is_fork: bool, found: &CheckpointMeta) -> Result<(), StreamEnd> {
        self.parts.ids.heed(&found.checkpoint_id);
        if is_fork {
            let newest = HistoryQuery {
                limit: 1,
                ..HistoryQuery::default()
            };
            let newest = self
                .read(|| {
                    self.parts
                        .checkpointer
                        .list_meta(&self.plan.thread_id, &newest)
                })
                .await?;
            newest
                .iter()
                .for_each(|meta| self.parts.ids.heed(&meta.checkpoint_id));
        }
        Ok(())
    }

    /// A checkpoint from before an input goes on with that input, which its successor holds.
    async fn with_input(&self, before: Snapshot) -> Result<Option<Snapshot>, StreamEnd> {
        let query = HistoryQuery {
            limit: MOST_SUCCESSORS,
            ..HistoryQuery::default()
        };
        let metas = self
            .read(|| {
                self.parts
                    .checkpointer
                    .list_meta(&self.plan.thread_id, &query)
            })
            .await?;
        let follows =
            |meta: &&CheckpointMeta| meta.parent_id.as_ref() == Some(&before.meta.checkpoint_id);
        match metas.iter().rfind(follows) {
            Some(meta) => {
                self.read(|| {
                    self.parts
                        .checkpointer
                        .get(&self.plan.thread_id, Some(&meta.checkpoint_id))
                })
                .await
            }
            None => Ok(Some(before)),
        }
    }

    /// Reduces the input; whatever was due before is dropped. The state before it becomes a checkpoint, so that a fork can
    /// begin there.
    async fn take_input(&mut self, update: StateUpdate) -> Result<(), StreamEnd> {
        let before = self.progress.state.clone();
        self.take_update(update)?;
        let after = std::mem::replace(&mut self.progress.state, before);
        let id = self.parts.ids.random().to_string();
        self.progress.next = vec![PendingTask::new(id, START)];
        self.progress.machine = None;
        self.checkpoint(CheckpointSource::Input).await?;
        self.progress.state = after;
        self.progress.next.clear();
        self.progress.dirty = true;
        self.progress.input_unsaved = true;
        Ok(())
    }

    /// Reduces changes that a client sends with a run.
    pub(super) fn take_update(&mut self, mut update: StateUpdate) -> Result<(), StreamEnd> {
        if update.is_empty() {
            return Ok(());
        }
        for message in &mut update.messages {
            if message.id.is_none() {
                *message = message.with(|body| body.id = Some(self.parts.ids.message_id()));
            }
        }
        let ids: Vec<String> = update
            .messages
            .iter()
            .filter_map(|message| message.id.clone())
            .collect();
        Arc::make_mut(&mut self.progress.state)
            .apply_within(
                update,
                self.plan.limits.max_thread_messages,
                &*self.parts.ids,
            )
            .map_err(|error| StreamEnd::failed("InvalidUpdateError", error.to_string()))?;
        self.progress.dirty = true;
        self.callbacks.events.human(&self.progress.state, &ids);
        Ok(())
    }

    /// Lets the agent complete the newest user message while no checkpoint has it: the log then holds it once.
    fn complete_input(&mut self) {
        let Some(last) = self
            .progress
            .state
            .messages()
            .last()
            .filter(|message| message.is_human())
        else {
            return;
        };
        let facts = InputFacts {
            run_id: self.plan.run_id.clone(),
            now: self.parts.clock.now(),
        };
        if let Some(message) = self.plan.agent.complete_input(last, &facts) {
            Arc::make_mut(&mut self.progress.state).replace_last(message);
        }
    }

    fn context(&self, sink: EventSink) -> RunContext {
        RunContext {
            thread_id: self.plan.thread_id.clone(),
            run_id: self.plan.run_id.clone(),
            actor: self.plan.actor.clone(),
            options: self.plan.options.clone(),
            tags: self.plan.tags.clone(),
            namespace: Arc::from(""),
            recursion_limit: self.plan.recursion_limit,
            interrupt_before: self.plan.interrupt_before.clone(),
            interrupt_after: self.plan.interrupt_after.clone(),
            clock: self.parts.clock.clone(),
            ids: self.parts.ids.clone(),
            sink,
            calls: self.calls.clone(),
            token: self.live.token.child_token(),
        }
    }
}

/// A run that goes on from a checkpoint it names repeats what was done there, so agents that have ended begin anew.
fn without_ended(mut next: Vec<PendingTask>) -> Vec<PendingTask> {
    for task in &mut next {
        task.nested.take_if(|nested| nested.next.is_empty());
    }
    next
}

pub(super) fn awaits_input(snapshot: &Snapshot) -> bool {
    snapshot.meta.next.iter().any(|task| task.name == START)
}

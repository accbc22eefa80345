//! What agents inside of calls reach: kept with the tasks that make the calls, in the checkpoint at which those are due.

use std::sync::Arc;

use super::Execution;
use super::end::StreamEnd;
use super::prepare::START;
use crate::clock::Clock;
use crate::ids::{CheckpointId, IdSource};
use crate::runtime::agent::{AgentEvent, StepEvent};
use crate::runtime::checkpoint::{
    CheckpointMeta, CheckpointPlace, CheckpointSource, NestedState, PendingTask,
};
use crate::runtime::serialization::CheckpointView;
use crate::state::ThreadState;

impl Execution {
    /// Deals with one event of an agent inside a call.
    pub(super) async fn take_nested(&mut self, event: AgentEvent) -> Result<(), StreamEnd> {
        self.callbacks.hear(&event);
        let Some((path, step)) = step_in(&event) else {
            self.encoder.encode(&event, &mut self.frames);
            return self.publish_frames().await;
        };
        let (ids, clock) = (self.parts.ids.clone(), self.parts.clock.clone());
        self.reach(&path, |held| {
            if held.is_none() {
                Reached::Next(before_input(&*ids, &*clock))
            } else {
                Reached::Nothing
            }
        });
        self.encoder.encode(&event, &mut self.frames);
        if self.reach(&path, |held| {
            held.map_or(Reached::Nothing, |held| after(held, step, &*ids, &*clock))
        }) {
            self.save_nested().await?;
        }
        self.publish_frames().await
    }

    /// Keeps what `decide` makes of the state that the agent at `path` had, and shows it when it is a checkpoint of its own.
    /// Tells whether there is anything new.
    fn reach(
        &mut self,
        path: &[&str],
        decide: impl FnOnce(Option<&NestedState>) -> Reached,
    ) -> bool {
        let Some(outer) = self.progress.parent.clone() else {
            return false;
        };
        let Some((task, place)) = task_at(
            &mut self.progress.next,
            path,
            &outer,
            &CheckpointPlace::default(),
        ) else {
            return false;
        };
        let (new, shown) = match decide(task.nested.as_deref()) {
            Reached::Nothing => return false,
            Reached::Same(new) => (new, false),
            Reached::Next(new) => (new, true),
        };
        let new = Arc::new(new);
        task.nested = Some(new.clone());
        if shown {
            let meta = new.meta(&self.outer_meta(outer));
            self.encoder.checkpoint(
                &CheckpointView {
                    meta: &meta,
                    state: &new.state,
                    place: &place,
                },
                &mut self.frames,
            );
        }
        true
    }

    /// Saves it with the checkpoint that this run wrote last; what an earlier run wrote is amended at the end.
    async fn save_nested(&mut self) -> Result<(), StreamEnd> {
        let own = self.progress.own_checkpoint.is_some()
            && !self.progress.dirty
            && !self.progress.input_unsaved;
        if !own {
            return Ok(());
        }
        // What the journal tells of the agent is written with the state that it has reached by then.
        let rows = self.callbacks.flush();
        self.journal.events(rows);
        self.save().await
    }

    /// What checkpoints inside of the one with this id have in common with it.
    fn outer_meta(&self, checkpoint_id: CheckpointId) -> CheckpointMeta {
        self.meta(checkpoint_id, CheckpointSource::Loop, Vec::new(), None)
    }
}

/// What becomes of a kept state.
enum Reached {
    Nothing,
    /// The same checkpoint, at which something else is due now.
    Same(NestedState),
    /// A checkpoint that follows.
    Next(NestedState),
}

/// The step that an agent inside of calls has made, and the calls' namespaces from outside in.
fn step_in(mut event: &AgentEvent) -> Option<(Vec<&str>, &StepEvent)> {
    let mut path = Vec::new();
    loop {
        match event {
            AgentEvent::Nested(namespace, inside) => {
                path.push(&**namespace);
                event = inside;
            }
            AgentEvent::Step(step) => return Some((path, step)),
            _ => return None,
        }
    }
}

/// The task that makes the innermost call of a path, and the place of the agent inside of it.
fn task_at<'a>(
    next: &'a mut [PendingTask],
    path: &[&str],
    at: &CheckpointId,
    place: &CheckpointPlace,
) -> Option<(&'a mut PendingTask, CheckpointPlace)> {
    let (first, rest) = path.split_first()?;
    let task = next.iter_mut().find(|task| task.namespace() == *first)?;
    let place = place.inside(at, first);
    if rest.is_empty() {
        return Some((task, place));
    }
    let held = Arc::make_mut(task.nested.as_mut()?);
    task_at(&mut held.next, rest, &held.checkpoint_id, &place)
}

/// Where every agent begins: nothing is there yet, and the input is due.
fn before_input(ids: &dyn IdSource, clock: &dyn Clock) -> NestedState {
    NestedState {
        checkpoint_id: ids.checkpoint_id(),
        parent_id: None,
        source: CheckpointSource::Input,
        step: -1,
        next: vec![PendingTask::new(ids.random().to_string(), START)],
        machine: None,
        state: Arc::new(ThreadState::default()),
        created_at: clock.now(),
    }
}

/// What a step makes of the state before it. As with the run's own checkpoints, the input has one, and then each step that is
/// worth it; what becomes of tasks that were due belongs to the one at which they were.
fn after(held: &NestedState, step: &StepEvent, ids: &dyn IdSource, clock: &dyn Clock) -> Reached {
    let with_input = held.source == CheckpointSource::Input;
    if !step.checkpoint && !with_input {
        return Reached::Nothing;
    }
    let mut next = step.next.clone();
    PendingTask::carry_over(&mut next, &held.next);
    let machine = Some(step.machine.clone());
    if !with_input && held.state == step.state {
        return Reached::Same(NestedState {
            next,
            machine,
            ..held.clone()
        });
    }
    Reached::Next(NestedState {
        checkpoint_id: ids.checkpoint_id(),
        parent_id: Some(held.checkpoint_id.clone()),
        source: CheckpointSource::Loop,
        step: held.step + 1,
        next,
        machine,
        state: step.state.clone(),
        created_at: clock.now(),
    })
}

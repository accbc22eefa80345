//! State of nested agents, which run inside of tool calls. It is stored in the pending tasks that
//! make the calls.

use std::sync::Arc;

use super::prepare::START;
use super::stream_end::StreamEnd;
use crate::agent::{AgentEvent, StepEvent};
use crate::checkpoint::{
    CheckpointMeta, CheckpointPath, CheckpointSource, NestedState, PendingTask,
};
use crate::encoding::CheckpointView;
use crate::execution::Execution;
use deerflow_core::clock::Clock;
use deerflow_core::ids::{CheckpointId, IdSource};
use deerflow_core::state::ThreadState;

impl Execution {
    /// Handles one event of a nested agent.
    pub(super) async fn handle_nested(&mut self, event: AgentEvent) -> Result<(), StreamEnd> {
        self.callbacks.on_event(&event);
        let Some((path, step)) = nested_step(&event) else {
            self.encoder.encode(&event, &mut self.frames);
            return self.publish_frames().await;
        };
        let (ids, clock) = (self.ports.ids.clone(), self.ports.clock.clone());
        self.update_nested(&path, |current| {
            if current.is_none() {
                NestedChange::Next(before_input(&*ids, &*clock))
            } else {
                NestedChange::Unchanged
            }
        });
        self.encoder.encode(&event, &mut self.frames);
        if self.update_nested(&path, |current| {
            current.map_or(NestedChange::Unchanged, |current| {
                after(current, step, &*ids, &*clock)
            })
        }) {
            // Boxed: the future of the stream would hold its memory during the whole run.
            Box::pin(self.save_nested()).await?;
        }
        self.publish_frames().await
    }

    /// Applies `decide` to the state of the agent at `path`, stores the result, and emits a new
    /// checkpoint. Returns `true` if the state has changed.
    fn update_nested(
        &mut self,
        path: &[&str],
        decide: impl FnOnce(Option<&NestedState>) -> NestedChange,
    ) -> bool {
        let Some(outer) = self.progress.parent.clone() else {
            return false;
        };
        let Some((task, checkpoint_path)) = task_at(
            &mut self.progress.next,
            path,
            &outer,
            &CheckpointPath::default(),
        ) else {
            return false;
        };
        let (new, is_new_checkpoint) = match decide(task.nested.as_deref()) {
            NestedChange::Unchanged => return false,
            NestedChange::Same(new) => (new, false),
            NestedChange::Next(new) => (new, true),
        };
        let new = Arc::new(new);
        task.nested = Some(new.clone());
        if is_new_checkpoint {
            let meta = new.meta(&self.outer_meta(outer));
            self.encoder.checkpoint(
                &CheckpointView {
                    meta: &meta,
                    state: &new.state,
                    place: &checkpoint_path,
                },
                &mut self.frames,
            );
        }
        true
    }

    /// Saves the state with the last checkpoint of this run. A checkpoint of an earlier run is
    /// amended only at the end.
    async fn save_nested(&mut self) -> Result<(), StreamEnd> {
        let own = self.progress.own_checkpoint.is_some()
            && !self.progress.dirty
            && !self.progress.has_unsaved_input;
        if !own {
            return Ok(());
        }
        // Journal rows of the agent are committed together with its state.
        let rows = self.callbacks.flush();
        self.commit_buffer.events(rows);
        self.save().await
    }

    /// Returns the metadata that checkpoints nested in this one share with it.
    fn outer_meta(&self, checkpoint_id: CheckpointId) -> CheckpointMeta {
        self.meta(checkpoint_id, CheckpointSource::Loop, Vec::new(), None)
    }
}

/// Change of a nested agent's state.
enum NestedChange {
    Unchanged,
    /// Same checkpoint with other pending tasks.
    Same(NestedState),
    /// A new checkpoint.
    Next(NestedState),
}

/// Returns the step of a nested agent, and the namespaces of the calls from the outermost to the
/// innermost.
fn nested_step(mut event: &AgentEvent) -> Option<(Vec<&str>, &StepEvent)> {
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

/// Finds the task that makes the innermost call of a path, and the checkpoint path of the agent
/// inside of it.
fn task_at<'a>(
    next: &'a mut [PendingTask],
    path: &[&str],
    at: &CheckpointId,
    checkpoint_path: &CheckpointPath,
) -> Option<(&'a mut PendingTask, CheckpointPath)> {
    let (first, rest) = path.split_first()?;
    let task = next.iter_mut().find(|task| task.namespace() == *first)?;
    let checkpoint_path = checkpoint_path.inside(at, first);
    if rest.is_empty() {
        return Some((task, checkpoint_path));
    }
    let current = Arc::make_mut(task.nested.as_mut()?);
    task_at(
        &mut current.next,
        rest,
        &current.checkpoint_id,
        &checkpoint_path,
    )
}

/// Returns the initial state of an agent: empty, with the input pending.
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

/// Returns the change that a step makes. As in the run itself, the input has its own checkpoint,
/// and each later step has one if the agent requests it. Progress of pending tasks is stored in the
/// checkpoint at which they became pending.
fn after(
    current: &NestedState,
    step: &StepEvent,
    ids: &dyn IdSource,
    clock: &dyn Clock,
) -> NestedChange {
    let with_input = current.source == CheckpointSource::Input;
    if !step.checkpoint && !with_input {
        return NestedChange::Unchanged;
    }
    let mut next = step.next.clone();
    PendingTask::carry_over(&mut next, &current.next);
    let machine = Some(step.machine.clone());
    if !with_input && current.state == step.state {
        return NestedChange::Same(NestedState {
            next,
            machine,
            ..current.clone()
        });
    }
    NestedChange::Next(NestedState {
        checkpoint_id: ids.checkpoint_id(),
        parent_id: Some(current.checkpoint_id.clone()),
        source: CheckpointSource::Loop,
        step: current.step + 1,
        next,
        machine,
        state: step.state.clone(),
        created_at: clock.now(),
    })
}

//! Invariants of the store, the streams and the tool effects, checked after all runs have ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::flow::has_flow;
use super::flow_invariants;
use super::nodes::Cluster;
use super::world::{Observations, RequestedRun, World};
use crate::ids::{RunId, ThreadId};
use crate::messages::{Message, MessageKind, ToolStatus};
use crate::runtime::actor_context::Owner;
use crate::runtime::checkpoint::Checkpointer;
use crate::runtime::runs::store::RunQueryStore;
use crate::runtime::runs::{Durability, RunRecord, RunStatus, StopReason, ThreadStatus};
use crate::runtime::stream_bridge::TerminalKind;

/// Time in which runs must end once faults are disabled.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(200);

pub(super) async fn stored(cluster: &Cluster, run_id: &RunId) -> Option<RunRecord> {
    RunQueryStore::get(&*cluster.stores, run_id, &Owner::None)
        .await
        .expect("memory is readable")
}

/// Waits until every run has ended.
pub(super) async fn wait_until_finished(world: &World, cluster: &Cluster) {
    let until = Instant::now() + SETTLE_TIMEOUT;
    loop {
        // Delayed writes may still be in flight.
        sleep(Duration::from_secs(3)).await;
        let unfinished = cluster
            .stores
            .standing(None, &Owner::None)
            .await
            .expect("memory is readable");
        if unfinished.is_empty() {
            return;
        }
        if Instant::now() > until {
            for run in unfinished {
                world.violation(format_args!("{} never ends: {}", run.run_id, run.status));
            }
            return;
        }
    }
}

/// Checks all invariants.
pub(super) async fn check_invariants(world: &Arc<World>, cluster: &Cluster) {
    let requested: Vec<RequestedRun> = world
        .observations
        .lock()
        .requested
        .values()
        .cloned()
        .collect();
    let threads: BTreeSet<ThreadId> = requested
        .iter()
        .map(|requested| requested.thread_id.clone())
        .collect();
    let mut runs = BTreeMap::new();
    for requested in &requested {
        match stored(cluster, &requested.run_id).await {
            Some(run) => drop(runs.insert(requested.run_id.clone(), run)),
            None if requested.acked => world.violation(format_args!(
                "{} was accepted and is missing",
                requested.run_id
            )),
            None => {}
        }
    }
    let mut history = BTreeMap::new();
    for thread in &threads {
        let head = Checkpointer::get(&*cluster.stores, thread, None)
            .await
            .expect("memory is readable");
        history.insert(
            thread.clone(),
            head.map(|head| head.state.messages().to_vec())
                .unwrap_or_default(),
        );
        if cluster
            .stores
            .thread(thread)
            .is_some_and(|(status, _)| status == ThreadStatus::Busy)
        {
            world.violation(format_args!("thread {thread} is busy without a run"));
        }
    }
    let violation = {
        let observations = world.observations.lock();
        let mut checker = InvariantChecker {
            observations: &observations,
            runs: &runs,
            history: &history,
            violation: Vec::new(),
        };
        checker.check_ends();
        checker.check_inputs(&requested);
        checker.check_answers(&requested);
        checker.check_effects();
        checker.check_views();
        let of_flows = flow_invariants::violations(&observations, &runs, &history);
        checker.violation.extend(of_flows);
        checker.violation
    };
    violation.into_iter().for_each(|what| world.violation(what));
}

struct InvariantChecker<'a> {
    observations: &'a Observations,
    runs: &'a BTreeMap<RunId, RunRecord>,
    history: &'a BTreeMap<ThreadId, Vec<Message>>,
    violation: Vec<String>,
}

impl InvariantChecker<'_> {
    fn require(&mut self, promise: bool, what: impl FnOnce() -> String) {
        if !promise {
            self.violation.push(what());
        }
    }

    /// Each run has exactly one stored end.
    fn check_ends(&mut self) {
        for run in self.runs.values() {
            let ends = self
                .observations
                .ends
                .get(&run.run_id)
                .cloned()
                .unwrap_or_default();
            self.require(ends == [run.status], || {
                format!("{} is {} and ended in {ends:?}", run.run_id, run.status)
            });
        }
    }

    /// The thread of an accepted run contains its input once, unless the run was rolled back or
    /// never started.
    fn check_inputs(&mut self, requested: &[RequestedRun]) {
        for requested in requested {
            let Some(run) = self.runs.get(&requested.run_id) else {
                continue;
            };
            let label = requested.run_id.as_str();
            let marked = format!("{label}|");
            let messages = &self.history[&requested.thread_id];
            let there = messages
                .iter()
                .filter(|message| message.is_human() && message.content.text().starts_with(&marked))
                .count();
            let started = self
                .observations
                .model_answer
                .values()
                .any(|model_answer| model_answer.label == label);
            match (run.stop_reason(), run.status) {
                (Some(StopReason::RolledBack), _) => self.require(there == 0, || {
                    format!("{label} was rolled back and is in its thread")
                }),
                (_, RunStatus::Interrupted) if !started => self.require(there <= 1, || {
                    format!("{label} is {there} times in its thread")
                }),
                (_, status) => self.require(there == 1, || {
                    format!("the input of {label} ({status}) is {there} times in its thread")
                }),
            }
        }
    }

    /// Answers in the thread equal those of the model, and a successful run has all of them.
    fn check_answers(&mut self, requested: &[RequestedRun]) {
        let all: Vec<&Message> = self.history.values().flatten().collect();
        let mut ids = BTreeSet::new();
        for message in &all {
            let id = message.id.clone().unwrap_or_default();
            self.require(ids.insert(id.clone()), || {
                format!("message {id} is twice in a thread")
            });
        }
        let of_agents = self.history.iter().filter(|(thread, _)| !has_flow(thread));
        let answers: Vec<&Message> = of_agents.flat_map(|(_, messages)| messages).collect();
        for message in answers.into_iter().filter(|message| message.is_ai()) {
            let id = message.id.clone().unwrap_or_default();
            let text = message.content.text();
            match self.observations.model_answer.get(&id) {
                None => self.violation.push(format!("no model answer is {text:?}")),
                Some(model_answer) => {
                    let whole = model_answer.text == text
                        || (message.tool_calls().is_empty()
                            && model_answer.text.starts_with(&text));
                    self.require(whole, || {
                        format!(
                            "{:?} was the answer for {}, {text:?} is in the thread",
                            model_answer.text, model_answer.label
                        )
                    });
                }
            }
        }
        for requested in requested.iter().filter(|run| !has_flow(&run.thread_id)) {
            let Some(run) = self
                .runs
                .get(&requested.run_id)
                .filter(|run| run.status == RunStatus::Success)
            else {
                continue;
            };
            let messages = &self.history[&requested.thread_id];
            let marked = format!("{}|", requested.run_id);
            let Some(at) = messages
                .iter()
                .position(|message| message.content.text().starts_with(&marked))
            else {
                continue;
            };
            let turn: Vec<&Message> = messages[at + 1..]
                .iter()
                .take_while(|message| !message.is_human())
                .collect();
            let model_answer: Vec<_> = turn.iter().filter(|message| message.is_ai()).collect();
            let of_run = |message: &&&Message| {
                let model_answer = message
                    .id
                    .as_ref()
                    .and_then(|id| self.observations.model_answer.get(id));
                model_answer.is_some_and(|model_answer| {
                    model_answer.label == run.run_id.as_str()
                        && model_answer.whole
                        && model_answer.text == message.content.text()
                })
            };
            let whole =
                model_answer.len() == requested.steps + 1 && model_answer.iter().all(of_run);
            self.require(whole, || {
                format!(
                    "{} succeeded and has {} answers of {}",
                    run.run_id,
                    model_answer.len(),
                    requested.steps + 1
                )
            });
        }
    }

    /// Tools were executed as their effect kind allows, and the thread has the results.
    fn check_effects(&mut self) {
        let results: BTreeMap<&str, ToolStatus> = self
            .history
            .values()
            .flatten()
            .filter_map(|message| match &message.kind {
                MessageKind::Tool {
                    tool_call_id,
                    status,
                    ..
                } => Some((tool_call_id.as_str(), *status)),
                _ => None,
            })
            .collect();
        let calls: Vec<(String, String)> = self
            .history
            .values()
            .flatten()
            .flat_map(|message| {
                message
                    .tool_calls()
                    .iter()
                    .map(|call| (call.id.clone(), call.name.clone()))
            })
            .collect();
        let mut done: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        for effect in &self.observations.effects {
            done.entry(&effect.call_id).or_default().push(effect);
        }
        for (call, effects) in &done {
            let keys: BTreeSet<&str> = effects.iter().map(|effect| effect.key.as_str()).collect();
            self.require(keys.len() == 1, || {
                format!("call {call} has the keys {keys:?}")
            });
            let first = effects[0];
            self.require(first.tool != "sends" || effects.len() == 1, || {
                format!("unsafe call {call} was executed {} times", effects.len())
            });
            let run = self.runs.get(&first.run_id);
            let was_rolled_back = run.is_none_or(|run| run.is_rolled_back());
            let unsaved = self
                .observations
                .requested
                .get(first.run_id.as_str())
                .is_some_and(|requested| requested.durability == Durability::Exit);
            let has_call = calls.iter().any(|(id, _)| id == call);
            let needs_call = first.tool != "reads" && !was_rolled_back && !unsaved;
            self.require(has_call || !needs_call, || {
                format!(
                    "call {call} of {} was executed, its thread has no result",
                    first.run_id
                )
            });
        }
        for (call, tool) in &calls {
            if results.get(call.as_str()) == Some(&ToolStatus::Success) {
                let times = done.get(call.as_str()).map_or(0, Vec::len);
                self.require(times > 0, || {
                    format!("call {call} of {tool} has a result and was never executed")
                });
            }
        }
    }

    /// Viewers received the model's answers, all messages of the thread, and the stored end.
    fn check_views(&mut self) {
        for view in &self.observations.views {
            let Some(run) = self.runs.get(&view.run_id) else {
                self.violation.push(format!(
                    "a viewer saw {} end, and it is missing",
                    view.run_id
                ));
                continue;
            };
            let was_rolled_back = run.is_rolled_back();
            let fits = match view.end {
                Some(TerminalKind::End) => run.status == RunStatus::Success,
                Some(TerminalKind::Error) => {
                    matches!(run.status, RunStatus::Error | RunStatus::Timeout)
                }
                Some(TerminalKind::Cancel) => {
                    run.status == RunStatus::Interrupted || was_rolled_back
                }
                None => false,
            };
            self.require(fits, || {
                format!(
                    "{} ended in {}, a viewer got {:?}",
                    run.run_id, run.status, view.end
                )
            });
            for (id, text) in view.texts.iter().filter(|_| !has_flow(&run.thread_id)) {
                let model_answer = self
                    .observations
                    .model_answer
                    .get(id)
                    .map(|model_answer| model_answer.text.as_str())
                    .unwrap_or_default();
                self.require(model_answer.starts_with(text.as_str()), || {
                    format!(
                        "a viewer of {} read {text:?}, the model answered {model_answer:?}",
                        run.run_id
                    )
                });
            }
            let Some(messages) = self.history.get(&run.thread_id).filter(|_| !view.had_gap) else {
                continue;
            };
            for message in messages.iter().filter(|message| message.is_ai()) {
                let id = message.id.clone().unwrap_or_default();
                if self
                    .observations
                    .model_answer
                    .get(&id)
                    .is_some_and(|model_answer| model_answer.label == run.run_id.as_str())
                {
                    let read = view.texts.get(&id).cloned().unwrap_or_default();
                    let text = message.content.text();
                    self.require(read.starts_with(&text), || {
                        format!(
                            "a viewer of {} read {read:?}, the thread has {text:?}",
                            run.run_id
                        )
                    });
                }
            }
        }
    }
}

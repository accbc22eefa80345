//! When all is quiet: what the store, the streams and the effects say of the promises.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::nodes::Cluster;
use super::world::{Asked, Books, World};
use crate::ids::{RunId, ThreadId};
use crate::messages::{Message, MessageKind, ToolStatus};
use crate::runtime::actor_context::Owner;
use crate::runtime::checkpoint::Checkpointer;
use crate::runtime::runs::store::RunQueryStore;
use crate::runtime::runs::{Durability, ROLLED_BACK, RunRecord, RunStatus, ThreadStatus};
use crate::runtime::stream_bridge::TerminalKind;

/// How long runs may need to end once nothing fails any more.
const QUIET: Duration = Duration::from_secs(200);

pub(super) async fn stored(cluster: &Cluster, run_id: &RunId) -> Option<RunRecord> {
    RunQueryStore::get(&*cluster.stores, run_id, &Owner::None)
        .await
        .expect("memory is readable")
}

/// Waits until every run is over.
pub(super) async fn until_quiet(world: &World, cluster: &Cluster) {
    let until = Instant::now() + QUIET;
    loop {
        // Also those that are written late.
        sleep(Duration::from_secs(3)).await;
        let left = cluster
            .stores
            .standing(None, &Owner::None)
            .await
            .expect("memory is readable");
        if left.is_empty() {
            return;
        }
        if Instant::now() > until {
            for run in left {
                world.broken(format_args!("{} never ends: {}", run.run_id, run.status));
            }
            return;
        }
    }
}

/// Holds everything against everything.
pub(super) async fn judge(world: &Arc<World>, cluster: &Cluster) {
    let asked: Vec<Asked> = world.books.lock().asked.values().cloned().collect();
    let threads: BTreeSet<ThreadId> = asked.iter().map(|asked| asked.thread_id.clone()).collect();
    let mut runs = BTreeMap::new();
    for asked in &asked {
        match stored(cluster, &asked.run_id).await {
            Some(run) => drop(runs.insert(asked.run_id.clone(), run)),
            None if asked.acked => {
                world.broken(format_args!("{} was accepted and is gone", asked.run_id))
            }
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
            world.broken(format_args!("thread {thread} is busy with nothing"));
        }
    }
    let broken = {
        let books = world.books.lock();
        let mut judge = Judge {
            books: &books,
            runs: &runs,
            history: &history,
            broken: Vec::new(),
        };
        judge.ends();
        judge.inputs(&asked);
        judge.answers(&asked);
        judge.effects();
        judge.views();
        judge.broken
    };
    broken.into_iter().for_each(|what| world.broken(what));
}

struct Judge<'a> {
    books: &'a Books,
    runs: &'a BTreeMap<RunId, RunRecord>,
    history: &'a BTreeMap<ThreadId, Vec<Message>>,
    broken: Vec<String>,
}

impl Judge<'_> {
    fn holds(&mut self, promise: bool, what: impl FnOnce() -> String) {
        if !promise {
            self.broken.push(what());
        }
    }

    /// A run ends once.
    fn ends(&mut self) {
        for run in self.runs.values() {
            let ends = self
                .books
                .ends
                .get(&run.run_id)
                .cloned()
                .unwrap_or_default();
            self.holds(ends == [run.status], || {
                format!("{} is {} and ended in {ends:?}", run.run_id, run.status)
            });
        }
    }

    /// What was accepted is in its thread, once, unless it was undone or never begun.
    fn inputs(&mut self, asked: &[Asked]) {
        for asked in asked {
            let Some(run) = self.runs.get(&asked.run_id) else {
                continue;
            };
            let label = asked.run_id.as_str();
            let marked = format!("{label}|");
            let messages = &self.history[&asked.thread_id];
            let there = messages
                .iter()
                .filter(|message| message.is_human() && message.content.text().starts_with(&marked))
                .count();
            let begun = self.books.said.values().any(|said| said.label == label);
            match (run.stop_reason.as_deref(), run.status) {
                (Some(ROLLED_BACK), _) => self.holds(there == 0, || {
                    format!("{label} was undone and is in its thread")
                }),
                (_, RunStatus::Interrupted) if !begun => self.holds(there <= 1, || {
                    format!("{label} is {there} times in its thread")
                }),
                (_, status) => self.holds(there == 1, || {
                    format!("the input of {label} ({status}) is {there} times in its thread")
                }),
            }
        }
    }

    /// What the thread has of an answer is what the model said, and a run that went well has all of it.
    fn answers(&mut self, asked: &[Asked]) {
        let all: Vec<&Message> = self.history.values().flatten().collect();
        let mut ids = BTreeSet::new();
        for message in &all {
            let id = message.id.clone().unwrap_or_default();
            self.holds(ids.insert(id.clone()), || {
                format!("message {id} is twice in a thread")
            });
        }
        for message in all.iter().filter(|message| message.is_ai()) {
            let id = message.id.clone().unwrap_or_default();
            let text = message.content.text();
            match self.books.said.get(&id) {
                None => self.broken.push(format!("nobody said {text:?}")),
                Some(said) => {
                    let whole = said.text == text
                        || (message.tool_calls().is_empty() && said.text.starts_with(&text));
                    self.holds(whole, || {
                        format!(
                            "{:?} was said for {}, {text:?} is in the thread",
                            said.text, said.label
                        )
                    });
                }
            }
        }
        for asked in asked {
            let Some(run) = self
                .runs
                .get(&asked.run_id)
                .filter(|run| run.status == RunStatus::Success)
            else {
                continue;
            };
            let messages = &self.history[&asked.thread_id];
            let marked = format!("{}|", asked.run_id);
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
            let said: Vec<_> = turn.iter().filter(|message| message.is_ai()).collect();
            let of_run = |message: &&&Message| {
                let said = message.id.as_ref().and_then(|id| self.books.said.get(id));
                said.is_some_and(|said| {
                    said.label == run.run_id.as_str()
                        && said.whole
                        && said.text == message.content.text()
                })
            };
            let whole = said.len() == asked.steps + 1 && said.iter().all(of_run);
            self.holds(whole, || {
                format!(
                    "{} went well and has {} answers of {}",
                    run.run_id,
                    said.len(),
                    asked.steps + 1
                )
            });
        }
    }

    /// Tools did what their kind allows, and the thread knows of it.
    fn effects(&mut self) {
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
        for effect in &self.books.effects {
            done.entry(&effect.call_id).or_default().push(effect);
        }
        for (call, effects) in &done {
            let keys: BTreeSet<&str> = effects.iter().map(|effect| effect.key.as_str()).collect();
            self.holds(keys.len() == 1, || {
                format!("call {call} has the keys {keys:?}")
            });
            let first = effects[0];
            self.holds(first.tool != "sends" || effects.len() == 1, || {
                format!("unsafe call {call} was made {} times", effects.len())
            });
            let run = self.runs.get(&first.run_id);
            let undone = run.is_none_or(|run| run.stop_reason.as_deref() == Some(ROLLED_BACK));
            let unsaved = self
                .books
                .asked
                .get(first.run_id.as_str())
                .is_some_and(|asked| asked.durability == Durability::Exit);
            let known = calls.iter().any(|(id, _)| id == call);
            let must_be_known = first.tool != "reads" && !undone && !unsaved;
            self.holds(known || !must_be_known, || {
                format!(
                    "call {call} of {} was made, its thread does not know",
                    first.run_id
                )
            });
        }
        for (call, tool) in &calls {
            if results.get(call.as_str()) == Some(&ToolStatus::Success) {
                let times = done.get(call.as_str()).map_or(0, Vec::len);
                self.holds(times > 0, || {
                    format!("call {call} of {tool} has a result and was never made")
                });
            }
        }
    }

    /// Viewers saw what the model said, all that is in the thread, and the end that is stored.
    fn views(&mut self) {
        for view in &self.books.views {
            let Some(run) = self.runs.get(&view.run_id) else {
                self.broken
                    .push(format!("{} was seen to end and is gone", view.run_id));
                continue;
            };
            let undone = run.stop_reason.as_deref() == Some(ROLLED_BACK);
            let fits = match view.end {
                Some(TerminalKind::End) => run.status == RunStatus::Success,
                Some(TerminalKind::Error) => {
                    matches!(run.status, RunStatus::Error | RunStatus::Timeout)
                }
                Some(TerminalKind::Cancel) => run.status == RunStatus::Interrupted || undone,
                None => false,
            };
            self.holds(fits, || {
                format!(
                    "{} ended in {}, a viewer was told {:?}",
                    run.run_id, run.status, view.end
                )
            });
            for (id, text) in &view.texts {
                let said = self
                    .books
                    .said
                    .get(id)
                    .map(|said| said.text.as_str())
                    .unwrap_or_default();
                self.holds(said.starts_with(text.as_str()), || {
                    format!(
                        "a viewer of {} read {text:?}, said was {said:?}",
                        run.run_id
                    )
                });
            }
            let Some(messages) = self.history.get(&run.thread_id).filter(|_| !view.gapped) else {
                continue;
            };
            for message in messages.iter().filter(|message| message.is_ai()) {
                let id = message.id.clone().unwrap_or_default();
                if self
                    .books
                    .said
                    .get(&id)
                    .is_some_and(|said| said.label == run.run_id.as_str())
                {
                    let read = view.texts.get(&id).cloned().unwrap_or_default();
                    let text = message.content.text();
                    self.holds(read.starts_with(&text), || {
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

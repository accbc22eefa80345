//! Clients: they start runs on busy and on free threads, cancel them, and follow them, through any
//! node.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::agent::Script;
use super::flow::{FLOW_THREADS, has_flow};
use super::nodes::Cluster;
use super::viewer::{HEARTBEAT_INTERVAL, follow};
use super::world::{RequestedRun, World};
use crate::ids::{RunId, ThreadId};
use crate::messages::Message;
use crate::runtime::runs::{
    CancelAction, Durability, MultitaskStrategy, RunPresentation, RunRequest, RunStatus,
    WaitOutcome,
};
use crate::runtime::tasks::{TaskKind, TaskPanicked};

/// Maximum time of a final run once faults are disabled.
const FINAL_RUN_TIMEOUT: Duration = Duration::from_secs(30);

/// Starts all clients of a simulation.
pub(super) fn begin(
    world: &Arc<World>,
    cluster: &Arc<Cluster>,
) -> Vec<JoinHandle<Result<(), TaskPanicked>>> {
    let threads = 1 + world.chance.below(2);
    let client = |number: usize| {
        let client = Client {
            number,
            threads,
            world: world.clone(),
            cluster: cluster.clone(),
        };
        world.tasks.spawn(
            TaskKind::Finish,
            "client",
            async move { client.act().await },
        )
    };
    (0..2 + world.chance.below(2)).map(client).collect()
}

struct Client {
    number: usize,
    threads: usize,
    world: Arc<World>,
    cluster: Arc<Cluster>,
}

impl Client {
    async fn act(self) {
        let chance = &self.world.chance;
        let mut following = Vec::new();
        for nth in 0..2 + chance.below(3) {
            sleep(chance.millis(0, 3_500)).await;
            match chance.below(10) {
                0..6 => following.extend(self.request_run(nth).await),
                6..8 => self.cancel().await,
                _ => following.extend(self.any_requested_run().map(|run| self.follow(run, None))),
            }
        }
        for viewer in following {
            viewer
                .await
                .expect("not aborted")
                .expect("a viewer does not panic");
        }
    }

    async fn request_run(&self, nth: usize) -> Option<JoinHandle<Result<(), TaskPanicked>>> {
        let chance = &self.world.chance;
        let kind = if self.world.has_flows && chance.of_thousand(500) {
            FLOW_THREADS
        } else {
            't'
        };
        let thread = format!("{kind}{}", chance.below(self.threads));
        let strategies = [
            MultitaskStrategy::Reject,
            MultitaskStrategy::Enqueue,
            MultitaskStrategy::Interrupt,
            MultitaskStrategy::Rollback,
        ];
        let strategy = *chance.pick(&strategies);
        let durability = *chance.pick(&[
            Durability::Async,
            Durability::Async,
            Durability::Async,
            Durability::Sync,
            Durability::Exit,
        ]);
        let delay = if chance.of_thousand(100) {
            chance.millis(100, 3_000)
        } else {
            Duration::ZERO
        };
        let label = format!("{thread}-c{}-{nth}", self.number);
        let script = script(&label, &self.world);
        let spec = RunRequest {
            multitask: strategy,
            durability,
            delay,
            ..spec_of(&script, &thread)
        };
        let run_id = record_request(&self.world, &script, &spec);
        self.world.log_event(
            "client",
            format_args!("requests {label} {} {durability:?}", strategy.as_str()),
        );
        let node = self.cluster.any().clone();
        match chance.below(3) {
            0 => {
                let accepted = node
                    .request(|runs| async move { runs.create_background(spec).await })
                    .await;
                self.record_response(&run_id, matches!(accepted, Some(Ok(_))));
                (accepted.is_some_and(|answer| answer.is_ok()) && chance.of_thousand(600))
                    .then(|| self.follow(run_id, None))
            }
            1 => {
                let there = node.clone();
                let opened = node.request(|runs| async move {
                    let (_, stream) = runs.create_and_stream(spec, HEARTBEAT_INTERVAL).await?;
                    Ok::<_, crate::runtime::runs::RunError>(there.send(&runs, stream.items))
                });
                let opened = opened.await;
                self.record_response(&run_id, matches!(opened, Some(Ok(_))));
                match opened {
                    Some(Ok(connection)) => Some(self.follow(run_id, Some(connection))),
                    Some(Err(_)) => None,
                    // No response: the request may have been accepted.
                    None => Some(self.follow(run_id, None)),
                }
            }
            _ => {
                let ended = node
                    .request(|runs| async move { runs.create_and_wait(spec).await })
                    .await;
                self.record_response(&run_id, matches!(ended, Some(Ok(_))));
                None
            }
        }
    }

    fn record_response(&self, run_id: &RunId, acked: bool) {
        self.world.log_event(
            "client",
            format_args!("{run_id} is {}accepted", if acked { "" } else { "not " }),
        );
        if let Some(requested) = self
            .world
            .observations
            .lock()
            .requested
            .get_mut(run_id.as_str())
        {
            requested.acked |= acked;
        }
    }

    async fn cancel(&self) {
        let Some(run_id) = self.any_requested_run() else {
            return;
        };
        let chance = &self.world.chance;
        let action = *chance.pick(&[
            CancelAction::Interrupt,
            CancelAction::Interrupt,
            CancelAction::Rollback,
        ]);
        let wait = chance.of_thousand(300);
        self.world
            .log_event("client", format_args!("cancels {run_id} {action:?}"));
        let node = self.cluster.any().clone();
        node.request(|runs| async move { runs.cancel(None, &run_id, action, wait).await.is_ok() })
            .await;
    }

    fn any_requested_run(&self) -> Option<RunId> {
        let observations = self.world.observations.lock();
        let known: Vec<RunId> = observations
            .requested
            .values()
            .map(|requested| requested.run_id.clone())
            .collect();
        (!known.is_empty()).then(|| self.world.chance.pick(&known).clone())
    }

    fn follow(
        &self,
        run_id: RunId,
        connection: Option<super::nodes::Connection>,
    ) -> JoinHandle<Result<(), TaskPanicked>> {
        let following = follow(self.world.clone(), self.cluster.clone(), run_id, connection);
        self.world
            .tasks
            .spawn(TaskKind::Finish, "viewer", following)
    }
}

fn script(label: &str, world: &World) -> Script {
    let chance = &world.chance;
    let calls = |_| {
        (0..1 + chance.below(3))
            .map(|_| (*chance.pick(&["reads", "puts", "sends"])).to_owned())
            .collect()
    };
    Script {
        label: label.to_owned(),
        turns: (0..chance.below(3)).map(calls).collect(),
        words: 1 + chance.below(5),
    }
}

fn spec_of(script: &Script, thread: &str) -> RunRequest {
    let thread = ThreadId::parse(thread).expect("a plain id");
    let agent = if has_flow(&thread) { "flow" } else { "agent" };
    let text = script.text();
    let message =
        Message::human(text.clone()).with(|body| body.id = Some(format!("h-{}", script.label)));
    let request_echo = serde_json::json!({"input": {"messages": [message]}});
    RunRequest {
        run_id: Some(RunId::parse(&script.label).expect("a plain id")),
        presentation: RunPresentation {
            request_echo: request_echo.into(),
            ..RunPresentation::default()
        },
        ..RunRequest::ask(agent, thread, message)
    }
}

fn record_request(world: &World, script: &Script, spec: &RunRequest) -> RunId {
    let run_id = RunId::parse(&script.label).expect("a plain id");
    let crate::runtime::runs::RunScope::Stateful { thread_id, .. } = spec.scope.clone() else {
        unreachable!("there is at least one thread")
    };
    let requested = RequestedRun {
        run_id: run_id.clone(),
        thread_id,
        durability: spec.durability,
        steps: script.turns.len(),
        acked: false,
    };
    world
        .observations
        .lock()
        .requested
        .insert(script.label.clone(), requested);
    run_id
}

/// At the end, each thread must complete one more run within a time limit.
pub(super) async fn request_final_runs(world: &Arc<World>, cluster: &Arc<Cluster>) {
    let mut threads: Vec<String> = world
        .observations
        .lock()
        .requested
        .values()
        .map(|requested| requested.thread_id.to_string())
        .collect();
    threads.dedup();
    for thread in threads {
        let script = Script {
            label: format!("{thread}-fresh-0"),
            turns: vec![vec!["puts".to_owned(), "reads".to_owned()]],
            words: 3,
        };
        let spec = spec_of(&script, &thread);
        let run_id = record_request(world, &script, &spec);
        let node = cluster.any().clone();
        let answer = timeout(
            FINAL_RUN_TIMEOUT,
            node.request(|runs| async move { runs.create_and_wait(spec).await }),
        )
        .await;
        match answer {
            Ok(Some(Ok((_, WaitOutcome::Values(_))))) => {
                let stored = super::invariants::stored(cluster, &run_id).await;
                if stored
                    .as_ref()
                    .is_none_or(|run| run.status != RunStatus::Success)
                {
                    world.violation(format_args!(
                        "a final run of {thread} ended in {:?}",
                        stored.map(|run| run.status)
                    ));
                }
            }
            other => world.violation(format_args!("a final run of {thread} returned {other:?}")),
        }
    }
}

//! A client that follows a run to its end, through any node, and checks the guarantees of a stream.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep, timeout_at};

use super::nodes::{Cluster, Connection};
use super::world::World;
use crate::ids::RunId;
use crate::runtime::actor_context::Owner;
use crate::runtime::runs::RunError;
use crate::runtime::runs::store::RunQueryStore;
use crate::runtime::stream_bridge::{EventId, ResumeFrom, StreamEvent, StreamItem, TerminalKind};

/// Heartbeat interval of a stream.
pub(super) const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum time until the end of a run.
const END_TIMEOUT: Duration = Duration::from_secs(400);

/// Items that one client saw of a run.
#[derive(Debug)]
pub(super) struct View {
    pub(super) run_id: RunId,
    /// Text of each answer, joined from its fragments.
    pub(super) texts: BTreeMap<String, String>,
    /// `true` if the viewer got a gap.
    pub(super) had_gap: bool,
    last: Option<EventId>,
    pub(super) end: Option<TerminalKind>,
}

/// Follows a run from its first event.
pub(super) async fn follow(
    world: Arc<World>,
    cluster: Arc<Cluster>,
    run_id: RunId,
    mut connection: Option<Connection>,
) {
    let mut view = View {
        run_id,
        texts: BTreeMap::new(),
        had_gap: false,
        last: None,
        end: None,
    };
    let until = Instant::now() + END_TIMEOUT;
    while view.end.is_none() {
        if Instant::now() > until {
            world.violation(format_args!(
                "a viewer of {} never gets its end",
                view.run_id
            ));
            return;
        }
        match connection.take() {
            Some(open) => drop(timeout_at(until, view.read_to_end(open, &world, &cluster)).await),
            None => match view.reconnect(&world, &cluster).await {
                Ok(open) => connection = open,
                // The run was never accepted.
                Err(RunNotAccepted) => return,
            },
        }
    }
    world.log_event(
        "viewer",
        format_args!(
            "saw {} end in {:?} after {:?}",
            view.run_id, view.end, view.last
        ),
    );
    world.observations.lock().views.push(view);
}

struct RunNotAccepted;

impl View {
    async fn reconnect(
        &self,
        world: &World,
        cluster: &Cluster,
    ) -> Result<Option<Connection>, RunNotAccepted> {
        sleep(world.chance.millis(20, 800)).await;
        let node = cluster.any().clone();
        let (there, run_id) = (node.clone(), self.run_id.clone());
        let from = self.last.map_or(ResumeFrom::Start, ResumeFrom::After);
        let joined = node.request(move |runs| async move {
            let stream = runs
                .join_stream(None, &run_id, from, HEARTBEAT_INTERVAL)
                .await?;
            Ok(there.send(&runs, stream.items))
        });
        match joined.await {
            Some(Ok(open)) => Ok(Some(open)),
            Some(Err(RunError::NotFound(run_id))) => {
                if world
                    .observations
                    .lock()
                    .requested
                    .get(run_id.as_str())
                    .is_some_and(|requested| requested.acked)
                {
                    world.violation(format_args!("{run_id} was accepted and is missing"));
                }
                Err(RunNotAccepted)
            }
            Some(Err(_)) | None => Ok(None),
        }
    }

    async fn read_to_end(&mut self, mut connection: Connection, world: &World, cluster: &Cluster) {
        while let Some(item) = connection.next().await {
            match item {
                StreamItem::Event(event) => self.on_event(&event, world),
                StreamItem::Heartbeat => {}
                // Sent before an end that is known from the store only.
                StreamItem::Gap(gap) => {
                    world.log_event("viewer", format_args!("{}: {gap:?}", self.run_id));
                    self.had_gap = true;
                }
                StreamItem::Aborted => return,
                StreamItem::End(kind) => {
                    self.end = Some(kind);
                    let stored = cluster
                        .stores
                        .get(&self.run_id, &Owner::None)
                        .await
                        .expect("readable");
                    if stored.as_ref().is_none_or(|run| !run.status.is_terminal()) {
                        let status = stored.map(|run| run.status);
                        world.violation(format_args!(
                            "viewers of {} got {kind:?} while it is {status:?}",
                            self.run_id
                        ));
                    }
                    return;
                }
            }
        }
    }

    fn on_event(&mut self, event: &StreamEvent, world: &World) {
        let (seq, attempt) = self.last.map_or((0, 0), |last| (last.seq, last.attempt));
        if event.id.seq != seq + 1 || event.id.attempt < attempt {
            world.violation(format_args!(
                "a viewer of {} got {} after {seq}-{attempt}",
                self.run_id, event.id
            ));
        }
        if event.id.attempt > attempt && event.event != "metadata" && event.event != "error" {
            world.violation(format_args!(
                "attempt {} of {} begins with {}",
                event.id.attempt, self.run_id, event.event
            ));
        }
        self.last = Some(event.id);
        if event.event == "messages" {
            let data = event.data.clone().into_bytes();
            let data: Value = serde_json::from_slice(&data).expect("events are json");
            let chunk = &data[0];
            if chunk["type"] == "AIMessageChunk" {
                let id = chunk["id"].as_str().unwrap_or_default().to_owned();
                self.texts
                    .entry(id)
                    .or_default()
                    .push_str(chunk["content"].as_str().unwrap_or_default());
            }
        }
    }
}

//! A client that follows a run to its end, from whichever node answers, and holds what it sees against what a stream promises.

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

/// The longest silence of a stream.
pub(super) const BEAT: Duration = Duration::from_secs(5);
/// How long an end may take.
const PATIENCE: Duration = Duration::from_secs(400);

/// What one client saw of a run.
#[derive(Debug)]
pub(super) struct View {
    pub(super) run_id: RunId,
    /// The words of each answer, put together.
    pub(super) texts: BTreeMap<String, String>,
    /// Whether it was told that it misses something.
    pub(super) gapped: bool,
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
        gapped: false,
        last: None,
        end: None,
    };
    let until = Instant::now() + PATIENCE;
    while view.end.is_none() {
        if Instant::now() > until {
            world.broken(format_args!(
                "a viewer of {} waits for ever for its end",
                view.run_id
            ));
            return;
        }
        match connection.take() {
            Some(open) => drop(timeout_at(until, view.watch(open, &world, &cluster)).await),
            None => match view.come_back(&world, &cluster).await {
                Ok(open) => connection = open,
                // Never accepted, so there is nothing to follow.
                Err(NotThere) => return,
            },
        }
    }
    world.tell(
        "viewer",
        format_args!(
            "saw {} end in {:?} after {:?}",
            view.run_id, view.end, view.last
        ),
    );
    world.books.lock().views.push(view);
}

struct NotThere;

impl View {
    async fn come_back(
        &self,
        world: &World,
        cluster: &Cluster,
    ) -> Result<Option<Connection>, NotThere> {
        sleep(world.chance.millis(20, 800)).await;
        let node = cluster.any().clone();
        let (there, run_id) = (node.clone(), self.run_id.clone());
        let from = self.last.map_or(ResumeFrom::Start, ResumeFrom::After);
        let joined = node.request(move |runs| async move {
            let stream = runs.join_stream(None, &run_id, from, BEAT).await?;
            Ok(there.send(&runs, stream.items))
        });
        match joined.await {
            Some(Ok(open)) => Ok(Some(open)),
            Some(Err(RunError::NotFound(run_id))) => {
                if world
                    .books
                    .lock()
                    .asked
                    .get(run_id.as_str())
                    .is_some_and(|asked| asked.acked)
                {
                    world.broken(format_args!("{run_id} was accepted and is not there"));
                }
                Err(NotThere)
            }
            Some(Err(_)) | None => Ok(None),
        }
    }

    async fn watch(&mut self, mut connection: Connection, world: &World, cluster: &Cluster) {
        while let Some(item) = connection.next().await {
            match item {
                StreamItem::Event(event) => self.see(&event, world),
                StreamItem::Heartbeat => {}
                // Said before an end that only the store told of.
                StreamItem::Gap(gap) => {
                    world.tell("viewer", format_args!("{}: {gap:?}", self.run_id));
                    self.gapped = true;
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
                        world.broken(format_args!(
                            "viewers of {} were told of {kind:?} while it is {status:?}",
                            self.run_id
                        ));
                    }
                    return;
                }
            }
        }
    }

    fn see(&mut self, event: &StreamEvent, world: &World) {
        let (seq, attempt) = self.last.map_or((0, 0), |last| (last.seq, last.attempt));
        if event.id.seq != seq + 1 || event.id.attempt < attempt {
            world.broken(format_args!(
                "a viewer of {} got {} after {seq}-{attempt}",
                self.run_id, event.id
            ));
        }
        if event.id.attempt > attempt && event.event != "metadata" && event.event != "error" {
            world.broken(format_args!(
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

//! The nodes: each lives, dies and comes back under a new id, with nothing but what the store and the bridge have.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use super::agent::agent;
use super::faulty_bell::FaultyBell;
use super::faulty_bridge::FaultyBridge;
use super::line::FaultyStores;
use super::world::{Watch, World};
use crate::agents::StaticResolver;
use crate::runtime::memory::{MemoryNodeBell, MemoryOptions, MemoryStores, MemoryStreamBridge};
use crate::runtime::process::Process;
use crate::runtime::runs::{NullObserver, RunLimits, RunsFacade, RuntimeParts};
use crate::runtime::stream_bridge::StreamItem;
use crate::runtime::tasks::{TaskKind, Tasks};

/// The lease of each node.
pub(super) const LEASE: Duration = Duration::from_secs(3);
/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// All nodes, and what they share.
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) stores: Arc<MemoryStores>,
    pub(super) nodes: Vec<Arc<Node>>,
}

/// A place where processes live one after the other.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    world: Arc<World>,
    stores: Arc<MemoryStores>,
    bridge: Arc<MemoryStreamBridge>,
    bell: MemoryNodeBell,
    watch: Arc<Watch>,
    cut_until: Arc<Mutex<Instant>>,
    process: Mutex<Process>,
    /// Takes requests.
    ready: Mutex<Option<Arc<RunsFacade>>>,
}

/// A client's stream from a process.
pub(super) struct Connection {
    items: mpsc::UnboundedReceiver<StreamItem>,
    process: Process,
}

impl Connection {
    /// The next item, unless the connection breaks first.
    pub(super) async fn next(&mut self) -> Option<StreamItem> {
        tokio::select! {
            biased;
            () = self.process.died() => None,
            item = self.items.recv() => item,
            () = sleep(PATIENCE) => None,
        }
    }
}

impl Cluster {
    pub(super) fn new(world: &Arc<World>) -> Arc<Self> {
        let stores = Arc::new(MemoryStores::shared());
        let bridge = Arc::new(
            MemoryStreamBridge::new(MemoryOptions::default()).expect("the defaults are valid"),
        );
        let bell = MemoryNodeBell::default();
        let nodes = (0..2 + world.chance.below(2)).map(|number| {
            Arc::new(Node {
                name: format!("n{number}"),
                world: world.clone(),
                stores: stores.clone(),
                bridge: bridge.clone(),
                bell: bell.clone(),
                watch: Arc::new(Watch::new(world)),
                cut_until: Arc::new(Mutex::new(Instant::now())),
                process: Mutex::default(),
                ready: Mutex::default(),
            })
        });
        Arc::new(Self {
            nodes: nodes.collect(),
            stores,
        })
    }

    /// Starts all nodes, each to be started again whenever it dies.
    pub(super) async fn begin(&self) {
        for node in &self.nodes {
            node.begin().await;
            let (kept, world) = (node.clone(), node.world.clone());
            node.world
                .tasks
                .spawn(TaskKind::Service, "node", async move {
                    loop {
                        let process = kept.process.lock().clone();
                        process.died().await;
                        kept.ready.lock().take();
                        sleep(world.chance.millis(50, 5_000)).await;
                        kept.begin().await;
                    }
                });
        }
    }

    /// Waits until all nodes take requests.
    pub(super) async fn until_well(&self) {
        let well = |node: &Arc<Node>| {
            let process = node.process.lock();
            node.ready.lock().is_some() && !process.is_frozen() && !process.is_dead()
        };
        while !self.nodes.iter().all(well) {
            sleep(Duration::from_millis(500)).await;
        }
    }

    /// Any node, whatever state it is in.
    pub(super) fn any(&self) -> &Arc<Node> {
        self.nodes[0].world.chance.pick(&self.nodes)
    }
}

impl Node {
    async fn begin(&self) {
        loop {
            let process = Process::default();
            *self.process.lock() = process.clone();
            self.world.tell(&self.name, "starts");
            let runs = Arc::new(RunsFacade::new(
                self.parts(&process),
                RunLimits {
                    lease: LEASE,
                    ..RunLimits::default()
                },
            ));
            let recovering = runs.clone();
            let recovered = self.ask(&process, &runs.parts().tasks, async move {
                recovering.recover().await
            });
            if let Some(Ok(left)) = recovered.await {
                self.world
                    .tell(&self.name, format_args!("is ready, {left} runs were left"));
                *self.ready.lock() = Some(runs);
                return;
            }
            self.world.tell(&self.name, "cannot start");
            process.kill();
            sleep(self.world.chance.millis(100, 1_000)).await;
        }
    }

    fn parts(&self, process: &Process) -> RuntimeParts {
        let (world, process, name) = (self.world.clone(), process.clone(), self.name.clone());
        let bridge = FaultyBridge {
            bridge: self.bridge.clone(),
            world: world.clone(),
            process: process.clone(),
            name: name.clone(),
        };
        let bell = Arc::new(FaultyBell {
            bell: self.bell.clone(),
            world: world.clone(),
        });
        let agents = StaticResolver::new().with_agent("agent", agent(&world, &process));
        let tasks = Tasks::within(process.clone());
        let stores = Arc::new(FaultyStores {
            stores: self.stores.clone(),
            world,
            process,
            name,
            cut_until: self.cut_until.clone(),
        });
        RuntimeParts {
            bridge: Arc::new(bridge),
            checkpointer: stores.clone(),
            create: stores.clone(),
            commit: stores.clone(),
            query: stores.clone(),
            delete: stores.clone(),
            ledger: stores.clone(),
            nodes: stores.clone(),
            bell,
            events: stores,
            agents: Arc::new(agents),
            observer: Arc::new(NullObserver),
            clock: self.watch.clone(),
            ids: self.watch.clone(),
            tasks,
        }
    }

    /// Asks the process that is there for something. No answer says nothing of what became of it.
    pub(super) async fn request<T, F>(&self, work: impl FnOnce(Arc<RunsFacade>) -> F) -> Option<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let Some(runs) = self.ready.lock().clone() else {
            sleep(self.world.chance.millis(10, 300)).await;
            return None;
        };
        let process = self.process.lock().clone();
        let tasks = runs.parts().tasks.clone();
        self.ask(&process, &tasks, work(runs)).await
    }

    async fn ask<T: Send + 'static>(
        &self,
        process: &Process,
        tasks: &Tasks,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let answer = tasks.spawn(TaskKind::Finish, "request", work);
        tokio::select! {
            biased;
            () = process.died() => None,
            answer = answer => match answer {
                Ok(Ok(answer)) => Some(answer),
                Ok(Err(panic)) => {
                    self.world.broken(format_args!("a request panicked: {panic}"));
                    None
                }
                Err(_) => None,
            },
            () = sleep(PATIENCE) => None,
        }
    }

    /// Sends the items of a stream to a client, from the process that is there.
    pub(super) fn send(
        &self,
        runs: &RunsFacade,
        mut items: BoxStream<'static, StreamItem>,
    ) -> Connection {
        let (sender, receiver) = mpsc::unbounded_channel();
        let tasks = &runs.parts().tasks;
        let stop = tasks.token().clone();
        tasks.spawn(TaskKind::Service, "connection", async move {
            while let Some(Some(item)) = stop.run_until_cancelled(items.next()).await {
                if sender.send(item).is_err() {
                    return;
                }
            }
        });
        Connection {
            items: receiver,
            process: self.process.lock().clone(),
        }
    }

    pub(super) fn kill(&self) {
        self.world.fault(&self.name, "is killed");
        self.process.lock().kill();
    }

    pub(super) fn freeze(&self, time: Duration) {
        self.world
            .fault(&self.name, format_args!("stands still for {time:?}"));
        let (process, world, name) = (
            self.process.lock().clone(),
            self.world.clone(),
            self.name.clone(),
        );
        process.freeze();
        self.world
            .tasks
            .spawn(TaskKind::Service, "thaw", async move {
                sleep(time).await;
                world.tell(name, "goes on");
                process.thaw();
            });
    }

    pub(super) fn cut_off(&self, time: Duration) {
        self.world.fault(
            &self.name,
            format_args!("is cut off from the store for {time:?}"),
        );
        *self.cut_until.lock() = Instant::now() + time;
    }

    pub(super) fn set_clock(&self, off: TimeDelta) {
        self.world
            .fault(&self.name, format_args!("has its clock set off by {off}"));
        self.watch.set_off(off);
    }

    /// Ends the process as a server ends itself that is told to.
    pub(super) async fn stop(&self) {
        let Some(runs) = self.ready.lock().take() else {
            return;
        };
        self.world.fault(&self.name, "is told to stop");
        let process = self.process.lock().clone();
        let tasks = runs.parts().tasks.clone();
        let grace = self.world.chance.millis(0, 1_500);
        let ending = process.hold(async move {
            tasks.token().cancel();
            let idle = async {
                while runs.live_runs() > 0 {
                    sleep(Duration::from_millis(50)).await;
                }
            };
            let _some_are_left = timeout(grace, idle).await;
            runs.hand_over_all();
            let _some_hang = timeout(Duration::from_secs(5), tasks.shut_down()).await;
        });
        tokio::select! {
            biased;
            () = process.died() => {}
            () = ending => self.world.tell(&self.name, "has stopped"),
        }
        process.kill();
    }
}

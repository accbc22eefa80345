//! Simulated nodes: each starts, dies and restarts under a new id, with only the data of the store
//! and the bridge.

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
use super::faulty_bridge::FaultyBridge;
use super::faulty_notifier::FaultyNotifier;
use super::faulty_stores::FaultyStores;
use super::flow::flow_agent;
use super::world::{SkewedClock, World};
use crate::agents::StaticResolver;
use crate::runtime::in_memory::{
    InMemoryNodeNotifier, InMemoryOptions, InMemoryStores, InMemoryStreamBridge,
};
use crate::runtime::process::Process;
use crate::runtime::runs::{
    NoFileChanges, NodeLifecycle, NullObserver, RunLimits, RunsFacade, RuntimePorts,
};
use crate::runtime::stream_bridge::StreamItem;
use crate::runtime::tasks::{TaskKind, Tasks};

/// Lease of each node.
pub(super) const LEASE: Duration = Duration::from_secs(3);
/// Maximum time that a client waits for a response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// All nodes, and their shared resources.
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) stores: Arc<InMemoryStores>,
    pub(super) nodes: Vec<Arc<Node>>,
}

/// Host of a simulated process; when the process dies, the next one starts.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    world: Arc<World>,
    stores: Arc<InMemoryStores>,
    bridge: Arc<InMemoryStreamBridge>,
    notifier: InMemoryNodeNotifier,
    skewed_clock: Arc<SkewedClock>,
    cut_until: Arc<Mutex<Instant>>,
    process: Mutex<Process>,
    /// Facade of the running process, if it accepts requests.
    ready: Mutex<Option<Arc<RunsFacade>>>,
}

/// Stream of a client from a process.
pub(super) struct Connection {
    items: mpsc::UnboundedReceiver<StreamItem>,
    process: Process,
}

impl Connection {
    /// Returns the next item, unless the connection breaks first.
    pub(super) async fn next(&mut self) -> Option<StreamItem> {
        tokio::select! {
            biased;
            () = self.process.died() => None,
            item = self.items.recv() => item,
            () = sleep(REQUEST_TIMEOUT) => None,
        }
    }
}

impl Cluster {
    pub(super) fn new(world: &Arc<World>) -> Arc<Self> {
        let stores = Arc::new(InMemoryStores::shared());
        let bridge = Arc::new(
            InMemoryStreamBridge::new(InMemoryOptions::default()).expect("the defaults are valid"),
        );
        let notifier = InMemoryNodeNotifier::default();
        let nodes = (0..2 + world.chance.below(2)).map(|number| {
            Arc::new(Node {
                name: format!("n{number}"),
                world: world.clone(),
                stores: stores.clone(),
                bridge: bridge.clone(),
                notifier: notifier.clone(),
                skewed_clock: Arc::new(SkewedClock::new(world)),
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

    /// Starts all nodes; each is restarted whenever it dies.
    pub(super) async fn begin(&self) {
        for node in &self.nodes {
            node.begin().await;
            let (host, world) = (node.clone(), node.world.clone());
            node.world
                .tasks
                .spawn(TaskKind::Service, "node", async move {
                    loop {
                        let process = host.process.lock().clone();
                        process.died().await;
                        host.ready.lock().take();
                        sleep(world.chance.millis(50, 5_000)).await;
                        host.begin().await;
                    }
                });
        }
    }

    /// Waits until all nodes accept requests.
    pub(super) async fn wait_until_ready(&self) {
        let well = |node: &Arc<Node>| {
            let process = node.process.lock();
            node.ready.lock().is_some() && !process.is_frozen() && !process.is_dead()
        };
        while !self.nodes.iter().all(well) {
            sleep(Duration::from_millis(500)).await;
        }
    }

    /// Returns a random node, in any state.
    pub(super) fn any(&self) -> &Arc<Node> {
        self.nodes[0].world.chance.pick(&self.nodes)
    }
}

impl Node {
    async fn begin(&self) {
        loop {
            let process = Process::default();
            *self.process.lock() = process.clone();
            self.world.log_event(&self.name, "starts");
            let runs = Arc::new(RunsFacade::new(
                self.parts(&process),
                RunLimits {
                    lease: LEASE,
                    ..RunLimits::default()
                },
            ));
            let recovering = NodeLifecycle::new(runs.runtime());
            let recovered = self.execute(&process, &runs.runtime().ports().tasks, async move {
                recovering.recover().await
            });
            if let Some(Ok(left)) = recovered.await {
                self.world.log_event(
                    &self.name,
                    format_args!("is ready, {left} runs were orphaned"),
                );
                *self.ready.lock() = Some(runs);
                return;
            }
            self.world.log_event(&self.name, "cannot start");
            process.kill();
            sleep(self.world.chance.millis(100, 1_000)).await;
        }
    }

    fn parts(&self, process: &Process) -> RuntimePorts {
        let (world, process, name) = (self.world.clone(), process.clone(), self.name.clone());
        let bridge = FaultyBridge {
            bridge: self.bridge.clone(),
            world: world.clone(),
            process: process.clone(),
            name: name.clone(),
        };
        let notifier = Arc::new(FaultyNotifier {
            notifier: self.notifier.clone(),
            world: world.clone(),
        });
        let agents = StaticResolver::new()
            .with_agent("agent", agent(&world, &process))
            .with_agent("flow", flow_agent(&world));
        let tasks = Tasks::within(process.clone());
        let stores = Arc::new(FaultyStores {
            stores: self.stores.clone(),
            world,
            process,
            name,
            cut_until: self.cut_until.clone(),
        });
        RuntimePorts {
            bridge: Arc::new(bridge),
            checkpointer: stores.clone(),
            create: stores.clone(),
            commit: stores.clone(),
            query: stores.clone(),
            delete: stores.clone(),
            ledger: stores.clone(),
            nodes: stores.clone(),
            bell: notifier,
            events: stores,
            file_changes: Arc::new(NoFileChanges),
            agents: Arc::new(agents),
            observer: Arc::new(NullObserver),
            clock: self.skewed_clock.clone(),
            ids: self.skewed_clock.clone(),
            tasks,
        }
    }

    /// Sends a request to the running process. Without a response, its effect is unknown.
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
        let tasks = runs.runtime().ports().tasks.clone();
        self.execute(&process, &tasks, work(runs)).await
    }

    async fn execute<T: Send + 'static>(
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
                    self.world.violation(format_args!("a request panicked: {panic}"));
                    None
                }
                Err(_) => None,
            },
            () = sleep(REQUEST_TIMEOUT) => None,
        }
    }

    /// Sends the items of a stream from the running process to a client.
    pub(super) fn send(
        &self,
        runs: &RunsFacade,
        mut items: BoxStream<'static, StreamItem>,
    ) -> Connection {
        let (sender, receiver) = mpsc::unbounded_channel();
        let tasks = &runs.runtime().ports().tasks;
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
        self.world.record_fault(&self.name, "is killed");
        self.process.lock().kill();
    }

    pub(super) fn freeze(&self, time: Duration) {
        self.world
            .record_fault(&self.name, format_args!("is frozen for {time:?}"));
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
                world.log_event(name, "is thawed");
                process.thaw();
            });
    }

    pub(super) fn cut_off(&self, time: Duration) {
        self.world.record_fault(
            &self.name,
            format_args!("is disconnected from the store for {time:?}"),
        );
        *self.cut_until.lock() = Instant::now() + time;
    }

    pub(super) fn set_clock(&self, off: TimeDelta) {
        self.world
            .record_fault(&self.name, format_args!("has its clock shifted by {off}"));
        self.skewed_clock.set_off(off);
    }

    /// Shuts the process down gracefully, as a server does.
    pub(super) async fn stop(&self) {
        let Some(runs) = self.ready.lock().take() else {
            return;
        };
        self.world.record_fault(&self.name, "is requested to stop");
        let process = self.process.lock().clone();
        let tasks = runs.runtime().ports().tasks.clone();
        let grace = self.world.chance.millis(0, 1_500);
        let node = NodeLifecycle::new(runs.runtime());
        let ending = process.wrap(async move {
            tasks.token().cancel();
            let idle = async {
                while node.live_runs() > 0 {
                    sleep(Duration::from_millis(50)).await;
                }
            };
            let _some_may_remain = timeout(grace, idle).await;
            node.release_all();
            let _some_hang = timeout(Duration::from_secs(5), tasks.shut_down()).await;
        });
        tokio::select! {
            biased;
            () = process.died() => {}
            () = ending => self.world.log_event(&self.name, "has stopped"),
        }
        process.kill();
    }
}

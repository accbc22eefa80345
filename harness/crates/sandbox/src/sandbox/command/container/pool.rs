//! Pool of the containers of this process: leases, limits and eviction.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use super::api::SandboxApi;
use super::error::ContainerError;
use super::sandbox_host::{ContainerEndpoint, ContainerSpec, SandboxHost, SandboxId};
use super::slot::{Admission, PoolRules, PooledContainer, SharedContainer, Slot, admit};
use deerflow_core::tasks::{TaskKind, Tasks};

/// Poll interval of a new container's readiness.
const READY_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Timeout for removing all containers at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);

/// Containers of this process.
#[derive(Debug)]
pub(super) struct Pool {
    host: Arc<dyn SandboxHost>,
    pub(super) api: SandboxApi,
    rules: PoolRules,
    slots: Mutex<HashMap<SandboxId, Slot>>,
    changed: Notify,
    pub(super) tasks: Tasks,
}

/// Lease of a container. The container is not evicted while a lease exists.
#[derive(Debug)]
pub(super) struct ContainerLease {
    pool: Arc<Pool>,
    id: SandboxId,
    container: SharedContainer,
    /// `true` if the lease was taken to remove the container.
    for_removal: bool,
}

impl Pool {
    pub(super) fn new(
        host: Arc<dyn SandboxHost>,
        api: SandboxApi,
        rules: PoolRules,
        tasks: Tasks,
    ) -> Arc<Self> {
        Arc::new(Self {
            host,
            api,
            rules,
            slots: Mutex::default(),
            changed: Notify::new(),
            tasks,
        })
    }

    /// Returns a ready container. Its start continues if the caller is cancelled, so that no
    /// container is lost.
    pub(super) async fn acquire(
        self: &Arc<Self>,
        spec: ContainerSpec,
    ) -> Result<(ContainerLease, ContainerEndpoint), ContainerError> {
        let full = |_| ContainerError::Full {
            replicas: self.rules.replicas,
        };
        let lease = timeout(self.rules.acquire_limit, self.wait_for_lease(&spec.id))
            .await
            .map_err(full)??;
        let pool = self.clone();
        let preparation = self
            .tasks
            .spawn(TaskKind::Finish, "sandbox start", async move {
                let closing = pool.tasks.token().clone();
                tokio::select! {
                    endpoint = pool.prepare_container(&lease, &spec) => Ok((lease, endpoint?)),
                    () = closing.cancelled() => Err(ContainerError::Closing),
                }
            });
        preparation
            .await
            .ok()
            .and_then(Result::ok)
            .unwrap_or(Err(ContainerError::Closing))
    }

    async fn wait_for_lease(
        self: &Arc<Self>,
        id: &SandboxId,
    ) -> Result<ContainerLease, ContainerError> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Changes after this line are not missed.
            changed.as_mut().enable();
            let admission = admit(&self.slots.lock(), id, &self.rules);
            match admission {
                Admission::Grant => return Ok(self.lease(id)),
                Admission::Evict(oldest) => self.evict(&oldest, Duration::ZERO).await?,
                Admission::Wait => changed.await,
                Admission::Reject => {
                    return Err(ContainerError::Full {
                        replicas: self.rules.replicas,
                    });
                }
            }
        }
    }

    fn lease(self: &Arc<Self>, id: &SandboxId) -> ContainerLease {
        let mut slots = self.slots.lock();
        let slot = slots
            .entry(id.clone())
            .or_insert_with(|| Slot::new(SharedContainer::default()));
        slot.users += 1;
        ContainerLease {
            pool: self.clone(),
            id: id.clone(),
            container: slot.container.clone(),
            for_removal: false,
        }
    }

    fn lease_for_removal(
        self: &Arc<Self>,
        id: &SandboxId,
        idle: Duration,
    ) -> Option<ContainerLease> {
        let mut slots = self.slots.lock();
        let slot = slots
            .get_mut(id)
            .filter(|slot| slot.users == 0 && slot.idle_since.elapsed() >= idle)?;
        slot.users = 1;
        slot.is_removing = true;
        Some(ContainerLease {
            pool: self.clone(),
            id: id.clone(),
            container: slot.container.clone(),
            for_removal: true,
        })
    }

    /// Ensures that the leased slot has a ready container with the requested specification.
    async fn prepare_container(
        &self,
        lease: &ContainerLease,
        spec: &ContainerSpec,
    ) -> Result<ContainerEndpoint, ContainerError> {
        let mut container = lease.container.lock().await;
        let spec_digest = self.host.spec_digest(spec);
        if container.is_none() {
            *container = self.host.find(spec).await?.map(|endpoint| PooledContainer {
                endpoint,
                last_response: None,
            });
        }
        if let Some(pooled) = &mut *container {
            // Another command is running in it, so it is used whatever its specification is.
            let is_shared = self.users(&spec.id) > 1;
            let is_trusted = is_shared
                || pooled
                    .last_response
                    .is_some_and(|last_response| last_response.elapsed() < self.rules.trust);
            let fits = is_shared || pooled.endpoint.spec_digest == spec_digest;
            if fits && is_trusted {
                return Ok(pooled.endpoint.clone());
            }
            if fits && self.api.is_ready(&pooled.endpoint.url).await {
                pooled.last_response = Some(Instant::now());
                return Ok(pooled.endpoint.clone());
            }
        }
        if container.is_some() {
            tracing::info!(sandbox = %spec.id, "recreating a container that is not ready or has an outdated specification");
            self.host.remove(&spec.id).await?;
            *container = None;
        }
        let endpoint = self.host.launch(spec).await?;
        if let Err(error) = self.ready(&endpoint).await {
            self.host
                .remove(&spec.id)
                .await
                .unwrap_or_else(|error| log_removal_failure(&spec.id, &error));
            return Err(error);
        }
        *container = Some(PooledContainer {
            endpoint: endpoint.clone(),
            last_response: Some(Instant::now()),
        });
        Ok(endpoint)
    }

    async fn ready(&self, endpoint: &ContainerEndpoint) -> Result<(), ContainerError> {
        let is_ready = async {
            while !self.api.is_ready(&endpoint.url).await {
                sleep(READY_POLL_INTERVAL).await;
            }
        };
        let limit = self.rules.ready_limit;
        timeout(limit, is_ready)
            .await
            .map_err(|_| ContainerError::NotReady {
                seconds: limit.as_secs(),
            })
    }

    fn users(&self, id: &SandboxId) -> usize {
        self.slots.lock().get(id).map_or(0, |slot| slot.users)
    }

    /// Removes a container that was idle for `idle`. If the removal fails, the slot stays.
    async fn evict(self: &Arc<Self>, id: &SandboxId, idle: Duration) -> Result<(), ContainerError> {
        if let Some(lease) = self.lease_for_removal(id, idle) {
            let mut container = lease.container.lock().await;
            // A caller that waits for this lock creates a new container.
            self.host.remove(id).await?;
            *container = None;
        }
        Ok(())
    }

    /// Adopts orphaned containers, evicts idle ones, and removes all at shutdown.
    pub(super) async fn maintain(self: Arc<Self>) {
        let token = self.tasks.token().clone();
        token.run_until_cancelled(self.evict_idle()).await;
        let ids: Vec<SandboxId> = self.slots.lock().keys().cloned().collect();
        let removals = ids.iter().map(|id| self.host.remove(id));
        let outcomes = timeout(SHUTDOWN_TIMEOUT, futures_util::future::join_all(removals)).await;
        let failed = outcomes.map_or(ids.len(), |outcomes| {
            outcomes.iter().filter(|removed| removed.is_err()).count()
        });
        if failed > 0 {
            tracing::warn!(failed, "containers not removed; the next start adopts them");
        }
    }

    async fn evict_idle(self: &Arc<Self>) {
        match self.host.list_orphans().await {
            Ok(orphans) => self.adopt(orphans),
            Err(error) => tracing::warn!(%error, "cannot list orphaned containers"),
        }
        let Some(idle) = self.rules.idle_limit else {
            return std::future::pending().await;
        };
        loop {
            sleep((idle / 4).clamp(Duration::from_secs(1), Duration::from_secs(60))).await;
            let ids: Vec<SandboxId> = self.slots.lock().keys().cloned().collect();
            for id in ids {
                self.evict(&id, idle)
                    .await
                    .unwrap_or_else(|error| log_removal_failure(&id, &error));
            }
        }
    }

    fn adopt(&self, orphans: Vec<(SandboxId, ContainerEndpoint)>) {
        let mut slots = self.slots.lock();
        for (id, endpoint) in orphans {
            let container = || {
                Arc::new(tokio::sync::Mutex::new(Some(PooledContainer {
                    endpoint,
                    last_response: None,
                })))
            };
            slots.entry(id).or_insert_with(|| Slot::new(container()));
        }
    }
}

impl ContainerLease {
    /// Forces a readiness check before the next use.
    pub(super) async fn require_check(&self) {
        if let Some(pooled) = self.container.lock().await.as_mut() {
            pooled.last_response = None;
        }
    }

    pub(super) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }
}

impl Drop for ContainerLease {
    fn drop(&mut self) {
        let mut slots = self.pool.slots.lock();
        if let Some(slot) = slots.get_mut(&self.id) {
            slot.users -= 1;
            slot.is_removing &= !self.for_removal;
            slot.idle_since = Instant::now();
            if slot.users == 0
                && slot
                    .container
                    .try_lock()
                    .is_ok_and(|container| container.is_none())
            {
                slots.remove(&self.id);
            }
        }
        drop(slots);
        self.pool.changed.notify_waiters();
    }
}

fn log_removal_failure(id: &SandboxId, error: &ContainerError) {
    tracing::warn!(sandbox = %id, %error, "cannot remove a container");
}

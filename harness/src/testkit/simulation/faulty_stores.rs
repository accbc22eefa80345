//! Faulty connection of a node to the stores: responses are late or lost, writes are applied late
//! or not at all, and the node may crash at any of them.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::world::World;
use crate::runtime::checkpoint::{CheckpointError, PutError};
use crate::runtime::in_memory::InMemoryStores;
use crate::runtime::process::Process;
use crate::runtime::runs::store::{AdmitError, CommitError, StoreError};
use crate::runtime::tasks::TaskKind;

/// Connection of one node to the stores.
#[derive(Debug)]
pub(super) struct FaultyStores {
    pub(super) stores: Arc<InMemoryStores>,
    pub(super) world: Arc<World>,
    pub(super) process: Process,
    pub(super) name: String,
    /// No request succeeds before this time.
    pub(super) cut_until: Arc<Mutex<Instant>>,
}

/// Error type that can represent an unreachable store.
pub(super) trait ConnectionFailure {
    fn connection_failed() -> Self;
}

impl ConnectionFailure for StoreError {
    fn connection_failed() -> Self {
        Self::Unavailable("the connection failed".to_owned())
    }
}

impl ConnectionFailure for AdmitError {
    fn connection_failed() -> Self {
        StoreError::connection_failed().into()
    }
}

impl ConnectionFailure for CommitError {
    fn connection_failed() -> Self {
        StoreError::connection_failed().into()
    }
}

impl ConnectionFailure for CheckpointError {
    fn connection_failed() -> Self {
        StoreError::connection_failed().into()
    }
}

impl ConnectionFailure for PutError {
    fn connection_failed() -> Self {
        CheckpointError::connection_failed().into()
    }
}

/// Fault of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteFault {
    NoFault,
    /// The write fails and is not applied.
    WriteLost,
    /// The write fails although it was applied.
    ResponseLost,
    /// The write fails and is applied later.
    Delayed,
    /// The node crashes before the write is sent, while it is in flight, or after it was applied.
    CrashBefore,
    CrashDuring,
    CrashAfter,
}

impl FaultyStores {
    /// Executes a read.
    pub(super) async fn read<T, E: ConnectionFailure>(
        &self,
        what: &'static str,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        if self.is_cut() {
            return self.unreachable().await;
        }
        if self.world.faults_enabled() {
            match self.world.chance.below(1_000) {
                0..8 => {
                    self.world
                        .record_fault(&self.name, format_args!("{what} fails"));
                    return Err(E::connection_failed());
                }
                8..9 => return self.die(what).await,
                _ => {}
            }
        }
        self.pause().await;
        work.await
    }

    /// Executes a write. A sent write is applied even if its sender crashes.
    pub(super) async fn write<T, E>(
        &self,
        what: &'static str,
        details: String,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: ConnectionFailure + std::fmt::Display + Send + 'static,
    {
        if self.is_cut() {
            return self.unreachable().await;
        }
        let write_fault = self.write_fault();
        if write_fault != WriteFault::NoFault {
            self.world.record_fault(
                &self.name,
                format_args!("{what} {details}: {write_fault:?}"),
            );
        }
        match write_fault {
            WriteFault::WriteLost => {
                self.pause().await;
                return Err(E::connection_failed());
            }
            WriteFault::CrashBefore => return self.die(what).await,
            _ => {}
        }
        let latency = if write_fault == WriteFault::Delayed {
            self.world.chance.millis(50, 1_500)
        } else {
            self.latency()
        };
        let (world, name) = (self.world.clone(), self.name.clone());
        let write = async move {
            sleep(latency).await;
            let result = work.await;
            match &result {
                Ok(_) => world.log_event(name, format_args!("{what} {details}")),
                Err(error) => world.log_event(name, format_args!("{what} {details}: {error}")),
            }
            result
        };
        let write = self.world.tasks.spawn(TaskKind::Finish, what, write);
        match write_fault {
            WriteFault::CrashDuring => return self.die(what).await,
            WriteFault::Delayed => {
                sleep(self.world.chance.millis(1, 1_000)).await;
                return Err(E::connection_failed());
            }
            _ => {}
        }
        let result = write
            .await
            .expect("writes are not aborted")
            .expect("writes do not panic");
        self.pause().await;
        match write_fault {
            // Once faults are disabled, no node crashes from an earlier write.
            WriteFault::CrashAfter if self.world.faults_enabled() => self.die(what).await,
            WriteFault::ResponseLost => Err(E::connection_failed()),
            _ if self.is_cut() => self.unreachable().await,
            _ => result,
        }
    }

    fn write_fault(&self) -> WriteFault {
        if !self.world.faults_enabled() {
            return WriteFault::NoFault;
        }
        match self.world.chance.below(1_000) {
            0..15 => WriteFault::WriteLost,
            15..30 => WriteFault::ResponseLost,
            30..42 => WriteFault::Delayed,
            42..45 => WriteFault::CrashBefore,
            45..48 => WriteFault::CrashDuring,
            48..52 => WriteFault::CrashAfter,
            _ => WriteFault::NoFault,
        }
    }

    fn is_cut(&self) -> bool {
        self.world.faults_enabled() && Instant::now() < *self.cut_until.lock()
    }

    async fn unreachable<T, E: ConnectionFailure>(&self) -> Result<T, E> {
        sleep(self.world.chance.millis(100, 1_500)).await;
        Err(E::connection_failed())
    }

    async fn pause(&self) {
        let latency = self.latency();
        if !latency.is_zero() {
            sleep(latency).await;
        }
    }

    fn latency(&self) -> Duration {
        let chance = &self.world.chance;
        match chance.below(100) {
            0..60 => Duration::ZERO,
            60..95 => chance.millis(1, 15),
            95..99 => chance.millis(15, 200),
            _ if self.world.faults_enabled() => chance.millis(200, 2_500),
            _ => Duration::ZERO,
        }
    }

    async fn die<T>(&self, at: &'static str) -> T {
        self.world
            .record_fault(&self.name, format_args!("crashes at {at}"));
        self.process.kill();
        std::future::pending().await
    }
}

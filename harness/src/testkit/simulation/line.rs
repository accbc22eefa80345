//! A node's line to the stores, and it is a bad one: answers come late or never, writes are made all the same or not at all, and
//! the node may die over any of them.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::world::World;
use crate::runtime::checkpoint::{CheckpointError, PutError};
use crate::runtime::memory::MemoryStores;
use crate::runtime::process::Process;
use crate::runtime::runs::store::{AdmitError, CommitError, StoreError};
use crate::runtime::tasks::TaskKind;

/// One node's line to the stores.
#[derive(Debug)]
pub(super) struct FaultyStores {
    pub(super) stores: Arc<MemoryStores>,
    pub(super) world: Arc<World>,
    pub(super) process: Process,
    pub(super) name: String,
    /// Nothing gets through before this moment.
    pub(super) cut_until: Arc<Mutex<Instant>>,
}

/// How a store says that it cannot be reached.
pub(super) trait Away {
    fn away() -> Self;
}

impl Away for StoreError {
    fn away() -> Self {
        Self::Unavailable("the line is bad".to_owned())
    }
}

impl Away for AdmitError {
    fn away() -> Self {
        StoreError::away().into()
    }
}

impl Away for CommitError {
    fn away() -> Self {
        StoreError::away().into()
    }
}

impl Away for CheckpointError {
    fn away() -> Self {
        StoreError::away().into()
    }
}

impl Away for PutError {
    fn away() -> Self {
        CheckpointError::away().into()
    }
}

/// What becomes of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Well,
    /// It fails, and is not made.
    Lost,
    /// It fails, and was made.
    Unheard,
    /// It fails, and is made some time later.
    Late,
    /// The node dies before it is sent, while it is under way, or when it was made.
    DeathBefore,
    DeathDuring,
    DeathAfter,
}

impl FaultyStores {
    /// Reads.
    pub(super) async fn read<T, E: Away>(
        &self,
        what: &'static str,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        if self.is_cut() {
            return self.unreachable().await;
        }
        if self.world.is_stormy() {
            match self.world.chance.below(1_000) {
                0..8 => {
                    self.world.fault(&self.name, format_args!("{what} fails"));
                    return Err(E::away());
                }
                8..9 => return self.die(what).await,
                _ => {}
            }
        }
        self.pause().await;
        work.await
    }

    /// Writes. What was sent is made whatever becomes of who sent it.
    pub(super) async fn write<T, E>(
        &self,
        what: &'static str,
        details: String,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: Away + std::fmt::Display + Send + 'static,
    {
        if self.is_cut() {
            return self.unreachable().await;
        }
        let fate = self.fate();
        if fate != Fate::Well {
            self.world
                .fault(&self.name, format_args!("{what} {details}: {fate:?}"));
        }
        match fate {
            Fate::Lost => {
                self.pause().await;
                return Err(E::away());
            }
            Fate::DeathBefore => return self.die(what).await,
            _ => {}
        }
        let latency = if fate == Fate::Late {
            self.world.chance.millis(50, 1_500)
        } else {
            self.latency()
        };
        let (world, name) = (self.world.clone(), self.name.clone());
        let made = async move {
            sleep(latency).await;
            let answer = work.await;
            match &answer {
                Ok(_) => world.tell(name, format_args!("{what} {details}")),
                Err(error) => world.tell(name, format_args!("{what} {details}: {error}")),
            }
            answer
        };
        let made = self.world.tasks.spawn(TaskKind::Finish, what, made);
        match fate {
            Fate::DeathDuring => return self.die(what).await,
            Fate::Late => {
                sleep(self.world.chance.millis(1, 1_000)).await;
                return Err(E::away());
            }
            _ => {}
        }
        let answer = made
            .await
            .expect("writes are not aborted")
            .expect("writes do not panic");
        self.pause().await;
        match fate {
            // Once the storm is over nobody dies of what it sent.
            Fate::DeathAfter if self.world.is_stormy() => self.die(what).await,
            Fate::Unheard => Err(E::away()),
            _ if self.is_cut() => self.unreachable().await,
            _ => answer,
        }
    }

    fn fate(&self) -> Fate {
        if !self.world.is_stormy() {
            return Fate::Well;
        }
        match self.world.chance.below(1_000) {
            0..15 => Fate::Lost,
            15..30 => Fate::Unheard,
            30..42 => Fate::Late,
            42..45 => Fate::DeathBefore,
            45..48 => Fate::DeathDuring,
            48..52 => Fate::DeathAfter,
            _ => Fate::Well,
        }
    }

    fn is_cut(&self) -> bool {
        self.world.is_stormy() && Instant::now() < *self.cut_until.lock()
    }

    async fn unreachable<T, E: Away>(&self) -> Result<T, E> {
        sleep(self.world.chance.millis(100, 1_500)).await;
        Err(E::away())
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
            _ if self.world.is_stormy() => chance.millis(200, 2_500),
            _ => Duration::ZERO,
        }
    }

    async fn die<T>(&self, at: &'static str) -> T {
        self.world.fault(&self.name, format_args!("dies at {at}"));
        self.process.kill();
        std::future::pending().await
    }
}

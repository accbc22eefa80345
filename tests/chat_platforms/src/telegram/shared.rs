//! State that the routes and the handle of the fake share.

use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::common::{Calls, Faults};

use super::options::TelegramOptions;
use super::world::World;

/// State of one fake.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: TelegramOptions,
    pub(super) calls: Calls,
    pub(super) faults: Faults,
    world: Mutex<World>,
    /// Notified after every change of the world.
    pub(super) changed: Notify,
}

impl Shared {
    /// Creates the state.
    pub(super) fn new(options: TelegramOptions, world: World) -> Self {
        Self {
            options,
            calls: Calls::default(),
            faults: Faults::default(),
            world: Mutex::new(world),
            changed: Notify::new(),
        }
    }

    /// Returns the world for reading.
    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock()
    }

    /// Changes the world and notifies those who wait for a change.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let result = change(&mut self.world.lock());
        self.changed.notify_waiters();
        result
    }

    /// Returns the time for limits and drafts.
    pub(super) fn now(&self) -> Instant {
        Instant::now()
    }
}

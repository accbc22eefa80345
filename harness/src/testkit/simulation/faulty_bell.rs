//! The bell between nodes, which some do not hear.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;

use super::world::World;
use crate::runtime::memory::MemoryNodeBell;
use crate::runtime::runs::{NodeBell, Ring};

/// One node's end of the bell.
#[derive(Debug)]
pub(super) struct FaultyBell {
    pub(super) bell: MemoryNodeBell,
    pub(super) world: Arc<World>,
}

impl NodeBell for FaultyBell {
    fn ring(&self, ring: Ring) {
        self.bell.ring(ring);
    }

    fn listen(&self) -> BoxStream<'static, Ring> {
        let world = self.world.clone();
        let hears = move |_: &Ring| {
            std::future::ready(!world.is_stormy() || !world.chance.of_thousand(300))
        };
        self.bell.listen().filter(hears).boxed()
    }
}

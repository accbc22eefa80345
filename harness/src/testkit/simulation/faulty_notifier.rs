//! Node notifier that loses some signals.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;

use super::world::World;
use crate::runtime::in_memory::InMemoryNodeNotifier;
use crate::runtime::runs::{NodeNotifier, WakeSignal};

/// Notifier of one node.
#[derive(Debug)]
pub(super) struct FaultyNotifier {
    pub(super) notifier: InMemoryNodeNotifier,
    pub(super) world: Arc<World>,
}

impl NodeNotifier for FaultyNotifier {
    fn ring(&self, signal: WakeSignal) {
        self.notifier.ring(signal);
    }

    fn listen(&self) -> BoxStream<'static, WakeSignal> {
        let world = self.world.clone();
        let is_delivered = move |_: &WakeSignal| {
            std::future::ready(!world.faults_enabled() || !world.chance.of_thousand(300))
        };
        self.notifier.listen().filter(is_delivered).boxed()
    }
}

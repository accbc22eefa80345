//! The bell of one process: heard by everybody who shares it.

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::runtime::runs::{NodeBell, Ring};

/// Who is farther behind is told that rings were missed.
const RINGS_KEPT: usize = 256;

/// Rings within one process. Clones are one bell.
#[derive(Debug, Clone)]
pub struct MemoryNodeBell(broadcast::Sender<Ring>);

impl Default for MemoryNodeBell {
    fn default() -> Self {
        Self(broadcast::Sender::new(RINGS_KEPT))
    }
}

impl NodeBell for MemoryNodeBell {
    fn ring(&self, ring: Ring) {
        // Nobody may be listening.
        let _heard = self.0.send(ring);
    }

    fn listen(&self) -> BoxStream<'static, Ring> {
        stream::unfold(self.0.subscribe(), |mut rings| async {
            match rings.recv().await {
                Ok(ring) => Some((ring, rings)),
                Err(RecvError::Lagged(_)) => Some((Ring::Missed, rings)),
                Err(RecvError::Closed) => None,
            }
        })
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    async fn bells() -> [Arc<dyn NodeBell>; 2] {
        let bell = MemoryNodeBell::default();
        [Arc::new(bell.clone()), Arc::new(bell)]
    }

    crate::node_bell_suite!([#[tokio::test]] bells);

    #[tokio::test]
    async fn who_is_far_behind_is_told_that_rings_were_missed() {
        let bell = MemoryNodeBell::default();
        let mut heard = bell.listen();
        (0..=RINGS_KEPT).for_each(|_| bell.ring(Ring::Waiting));
        assert_eq!(heard.next().await, Some(Ring::Missed));
    }
}

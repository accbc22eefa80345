//! What watches over a lead agent's run, each part as its section of the configuration says.

use std::sync::Arc;

use crate::config::{AppConfig, LoopDetectionConfig};
use crate::middlewares::{LoopDetectionMiddleware, Middleware};

/// The sections that guards are made of.
#[derive(Debug, Clone, Default)]
pub struct Guards {
    /// Repeated tool calls.
    pub loop_detection: LoopDetectionConfig,
}

impl From<&AppConfig> for Guards {
    fn from(config: &AppConfig) -> Self {
        Self { loop_detection: config.loop_detection.clone() }
    }
}

impl Guards {
    /// The guards that are on.
    pub(super) fn middlewares(&self) -> Vec<Arc<dyn Middleware>> {
        let mut on: Vec<Arc<dyn Middleware>> = Vec::new();
        if self.loop_detection.enabled {
            on.push(Arc::new(LoopDetectionMiddleware::new(self.loop_detection.clone())));
        }
        on
    }
}

#[cfg(test)]
#[path = "guards_tests.rs"]
mod tests;

//! What watches over a lead agent's run, each part as its section of the configuration says.

use std::sync::Arc;

use crate::config::{AppConfig, LoopDetectionConfig, ToolOutputConfig};
use crate::middlewares::{
    InputSanitizationMiddleware, LoopDetectionMiddleware, Middleware, ToolOutputBudgetMiddleware, ToolResultSanitizationMiddleware,
};
use crate::sandbox::FileHome;

/// The sections that guards are made of.
#[derive(Debug, Clone, Default)]
pub struct Guards {
    /// Repeated tool calls.
    pub loop_detection: LoopDetectionConfig,
    /// Long results of tools.
    pub tool_output: ToolOutputConfig,
}

impl From<&AppConfig> for Guards {
    fn from(config: &AppConfig) -> Self {
        Self { loop_detection: config.loop_detection.clone(), tool_output: config.tool_output.clone() }
    }
}

impl Guards {
    /// The guards that are on.
    pub(super) fn middlewares(&self, files: Option<&FileHome>) -> Vec<Arc<dyn Middleware>> {
        let mut on: Vec<Arc<dyn Middleware>> = vec![Arc::new(InputSanitizationMiddleware), Arc::new(ToolResultSanitizationMiddleware)];
        if self.loop_detection.enabled {
            on.push(Arc::new(LoopDetectionMiddleware::new(self.loop_detection.clone())));
        }
        if self.tool_output.enabled {
            on.push(Arc::new(ToolOutputBudgetMiddleware::new(self.tool_output.clone(), files.cloned())));
        }
        on
    }
}

#[cfg(test)]
#[path = "guards_tests.rs"]
mod tests;

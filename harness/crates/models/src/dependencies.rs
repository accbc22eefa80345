//! Dependencies that all models share.

use std::sync::Arc;

use deerflow_core::clock::Clock;

/// Dependencies that all models share.
#[derive(Debug)]
pub(super) struct ModelDependencies {
    /// Clock for retry delays that providers state as dates.
    #[cfg_attr(
        not(feature = "providers"),
        expect(dead_code, reason = "no provider of this build uses the clock")
    )]
    pub(super) clock: Arc<dyn Clock>,
    #[cfg(feature = "providers")]
    pub(super) http:
        std::sync::OnceLock<Result<super::http::SharedHttp, super::http::HttpUnavailable>>,
}

impl ModelDependencies {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            #[cfg(feature = "providers")]
            http: std::sync::OnceLock::new(),
        }
    }
}

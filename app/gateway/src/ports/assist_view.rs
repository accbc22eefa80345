//! Port of auxiliary model features.

use std::fmt;

use harness::agents::assist::{Polisher, Suggester};
use harness::middlewares::summarization::Compactor;

/// Auxiliary model features of the current configuration; `None` if a feature is disabled.
pub trait AssistView: Send + Sync + fmt::Debug {
    /// Compactor of a thread's context for the entry `model`, or for the default model.
    fn compactor(&self, model: Option<&str>) -> Option<Compactor>;
    /// Compactor that measures a thread's share of the context window of the entry `model`, or of
    /// the default model. Also available if compaction is disabled.
    fn ruler(&self, model: Option<&str>) -> Compactor;
    /// Generator of follow-up questions.
    fn suggester(&self) -> Option<Suggester>;
    /// Rewriter of drafts.
    fn polisher(&self) -> Option<Polisher>;
}

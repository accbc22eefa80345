//! In-memory channel stores.

/// All channel stores of one process, in memory.
#[derive(Debug, Default)]
pub struct InMemoryChannels;

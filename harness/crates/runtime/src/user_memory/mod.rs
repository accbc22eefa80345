//! Port of the user memory store: documents about a user, and the threads with pending updates.

mod document;
mod in_memory;
mod store;

pub use document::{Fact, FactSource, HistoryNotes, MemoryDocument, Note, QUARANTINED, UserNotes};
pub use in_memory::InMemoryUserMemoryStore;
pub use store::{MemoryScope, MemoryUpdate, PendingUpdate, StoredMemory, UserMemoryStore};

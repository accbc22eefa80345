//! Long-term memory of a user across conversations.
//!
//! A run registers a pending update of its thread, by a write ([`UserMemories::note`]) or with a
//! commit ([`UserMemories::updated_by_commits`]). After the thread has
//! been quiet for a while, a `worker` reads the messages since the last update (`dialogue`), calls
//! a model to extract lasting information (`learn`), and merges it into the user's document
//! (`document`, [`merge`]). Agents read the memory as text within a token budget ([`render`]).

mod dialogue;
mod fact_fields;
mod import;
mod learn;
mod merge;
mod render;
mod rules;
mod service;
mod view;
mod worker;

pub use deerflow_runtime::user_memory::{
    Fact, FactSource, HistoryNotes, InMemoryUserMemoryStore, MemoryDocument, MemoryScope,
    MemoryUpdate, Note, PendingUpdate, QUARANTINED, StoredMemory, UserMemoryStore, UserNotes,
};
pub use dialogue::Dialogue;
pub use fact_fields::{category_issue, confidence_issue, content_issue};
pub use import::{ImportIssue, MAX_FACT_CHARS, import_issues};
pub use learn::{Learned, LearnedFact, LearnedNote, Learner};
pub use merge::merge;
pub use render::render;
pub use rules::MemoryRules;
pub use service::{FactChange, MemoryError, UserMemories};
pub use view::{MemoryStatus, MemoryView};
pub use worker::MemoryWorker;

//! Long-term memory: what is remembered about a user across conversations.
//!
//! A run notes that its thread has news ([`Memories::note`]). When the thread has been quiet for a while, a `worker` reads what was
//! said since the last time (`dialogue`), asks a model what of it is worth keeping (`learn`), and merges that into the user's
//! document (`document`, [`merge`]). What agents get to read of it is [`render`]ed within a budget.

mod dialogue;
mod document;
mod fact_fields;
mod import;
mod learn;
mod memories;
mod merge;
mod render;
mod rules;
mod shown;
mod store;
mod volatile;
mod worker;

pub use dialogue::Dialogue;
pub use document::{Fact, FactSource, HistoryNotes, MemoryDocument, Note, QUARANTINED, UserNotes};
pub use fact_fields::{category_issue, confidence_issue, content_issue};
pub use import::{ImportIssue, MOST_FACT_CHARS, import_issues};
pub use learn::{Learned, LearnedFact, LearnedNote, Learner};
pub use memories::{FactChange, Memories, MemoryError};
pub use merge::merge;
pub use render::render;
pub use rules::MemoryRules;
pub use shown::{MemoryStatus, MemoryView};
pub use store::{MemoryScope, MemoryStore, Noted, Stored};
pub use volatile::VolatileMemoryStore;
pub use worker::MemoryWorker;

//! Flows of users: their records, and the store of their versions.

mod in_memory;
mod record;
mod store;

pub use in_memory::InMemoryFlowStore;
pub use record::{
    FlowAsset, FlowContent, FlowRecord, FlowSummary, FlowVersionRecord, MAX_ASSETS,
    MAX_ASSETS_BYTES, MAX_SLUG_CHARS, MAX_TEXT_BYTES, StoredFlow, is_slug, slug_of,
};
pub use store::{
    DeletedFlow, Expected, FlowPage, FlowQuota, FlowStore, FlowWrite, SYSTEM_OWNER, SaveError,
};

//! The DeerFlow runtime kernel and agent framework, usable without a server.
//!
//! Modules in reading order: the conversation ([`messages`], [`state`]), its runs ([`runtime`]),
//! the resources of an agent ([`models`], [`tools`], [`sandbox`]), and the assembly of agents
//! ([`middlewares`], [`agents`], [`subagents`]), and
//! graphs of agents ([`flow`]). A layer depends only on the layers before it;
//! `cargo xtask boundary` checks that.

#[cfg(feature = "acp")]
pub mod acp;
#[cfg(feature = "config-file")]
pub mod config_file;
#[cfg(feature = "mcp")]
pub mod mcp;
mod rechecked;
pub mod tools;
pub mod user_memory;

pub mod agents;
pub mod middlewares;

pub mod flow;

pub mod client;

pub use agents::subagents;

#[cfg(any(test, feature = "testkit"))]
pub mod testkit;

#[cfg(feature = "http")]
pub use deerflow_core::net;
pub use deerflow_core::{
    clock, config, fair_permits, ids, json_size, messages, permit_waits, quota, state, turn_weights,
};
pub use deerflow_models as models;
#[cfg(feature = "mcp")]
pub use deerflow_sandbox::child_process;
pub use deerflow_sandbox::{artifacts, documents, sandbox, skills, uploads};

pub mod runtime {
    //! The run kernel (`deerflow-runtime`) and what it builds on.

    #[cfg(any(test, feature = "testkit"))]
    #[doc(hidden)]
    pub use deerflow_core::process;
    pub use deerflow_core::{actor_context, compute, fail_points, tasks};
    pub use deerflow_runtime::*;
}

#[cfg(any(test, feature = "testkit"))]
pub use deerflow_runtime::{
    checkpointer_suite, memory_store_suite, memory_update_suite, node_notifier_suite,
    node_store_suite, promise, promises, request_store_suite, run_events_suite, run_store_suite,
    stream_bridge_contract, stream_log_suite, tool_ledger_suite, webhook_outbox_suite,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct PackageReadme;

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct RepositoryReadme;

#[cfg(doctest)]
#[doc = include_str!("../../docs/embedding-flows.md")]
struct FlowsChapter;

// Former names, for crates that were written against them.
#[cfg(any(test, feature = "testkit"))]
#[doc(hidden)]
pub use deerflow_runtime::node_notifier_suite as node_bell_suite;
#[doc(hidden)]
pub mod memory {
    //! Former name of a module.

    pub use crate::user_memory::InMemoryUserMemoryStore as VolatileMemoryStore;
    pub use crate::user_memory::MAX_FACT_CHARS as MOST_FACT_CHARS;
    pub use crate::user_memory::PendingUpdate as Noted;
    pub use crate::user_memory::StoredMemory as Stored;
    pub use crate::user_memory::UserMemories as Memories;
    pub use crate::user_memory::UserMemoryStore as MemoryStore;
    pub use crate::user_memory::*;
}
#[cfg(feature = "mcp")]
#[doc(hidden)]
pub mod programs {
    //! Former name of a module.

    pub use deerflow_sandbox::child_process::*;
}

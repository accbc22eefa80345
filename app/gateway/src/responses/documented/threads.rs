//! Threads.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::selection::selection;
use crate::requests::bodies::ThreadStatusName;

/// An interrupt of an agent.
#[derive(Debug, ToSchema)]
pub struct Interrupt {
    /// Id of the interrupt.
    #[schema(nullable = false)]
    pub id: Option<String>,
    /// Value that the agent raised.
    #[schema(nullable = false)]
    pub value: Option<Value>,
}

/// Error of a thread.
#[derive(Debug, ToSchema)]
pub struct ThreadError {
    /// Error, if there is one.
    #[schema(nullable = false)]
    pub error: Option<String>,
    /// Message of the error.
    #[schema(nullable = false)]
    pub message: Option<String>,
}

/// Time to live of a thread.
#[derive(Debug, ToSchema)]
pub struct ThreadExpiry {
    /// Action at the expiry.
    pub strategy: String,
    /// Time to live after the last change, in minutes.
    pub ttl_minutes: f64,
    /// Time of the expiry.
    #[schema(format = "date-time")]
    pub expires_at: String,
}

/// A conversation.
#[derive(Debug, ToSchema)]
pub struct Thread {
    /// Id of the thread.
    #[schema(format = "uuid")]
    pub thread_id: String,
    /// Time of creation.
    #[schema(format = "date-time")]
    pub created_at: String,
    /// Time of the last change.
    #[schema(format = "date-time")]
    pub updated_at: String,
    /// Time of the last change of the state.
    #[schema(format = "date-time")]
    pub state_updated_at: String,
    /// Metadata.
    #[schema(value_type = Object)]
    pub metadata: Map<String, Value>,
    /// Current status.
    pub status: ThreadStatusName,
    /// Run configuration.
    #[schema(value_type = Object)]
    pub config: Map<String, Value>,
    /// The newest state, null if there is none.
    #[schema(value_type = Option<Object>, required = true)]
    pub values: Option<Map<String, Value>>,
    /// Interrupts by task.
    #[schema(nullable = false)]
    pub interrupts: Option<BTreeMap<String, Vec<Interrupt>>>,
    /// Error, if there is one.
    #[schema(inline)]
    pub error: Option<ThreadError>,
    /// Time to live.
    #[schema(inline)]
    pub ttl: Option<ThreadExpiry>,
    /// Extracted values by alias.
    #[schema(value_type = Object, required = false)]
    pub extracted: Option<Map<String, Value>>,
}

/// Number and size of rows.
#[derive(Debug, ToSchema)]
pub struct Size {
    /// Number.
    #[schema(minimum = 0)]
    pub count: u64,
    /// Size in bytes.
    #[schema(minimum = 0)]
    pub bytes: u64,
}

/// Number and size of the stored values of a channel.
#[derive(Debug, ToSchema)]
pub struct ChannelSize {
    /// Number of stored values; of `messages`, the number of stored messages.
    #[schema(minimum = 0)]
    pub versions: u64,
    /// Size in bytes.
    #[schema(minimum = 0)]
    pub bytes: u64,
}

/// Numbers and sizes of the stored values of all channels.
#[derive(Debug, ToSchema)]
pub struct ValuesSize {
    /// Number of stored values.
    #[schema(minimum = 0)]
    pub count: u64,
    /// Size in bytes.
    #[schema(minimum = 0)]
    pub bytes: u64,
    /// Number and size by channel.
    #[schema(inline)]
    pub by_channel: BTreeMap<String, ChannelSize>,
}

/// Size of the stored states of a thread.
#[derive(Debug, ToSchema)]
pub struct ThreadStorage {
    /// Id of the thread.
    #[schema(format = "uuid")]
    pub thread_id: String,
    /// Size in bytes.
    #[schema(minimum = 0)]
    pub total_bytes: u64,
    /// Checkpoints without values and pending tasks.
    #[schema(inline)]
    pub checkpoints: Size,
    /// Stored values.
    #[schema(inline)]
    pub channel_values: ValuesSize,
    /// Pending tasks of checkpoints.
    #[schema(inline)]
    pub pending_writes: Size,
}

/// Number of pruned threads.
#[derive(Debug, ToSchema)]
pub struct ThreadPruned {
    /// Number of pruned threads.
    #[schema(minimum = 0)]
    pub pruned_count: u64,
}

selection!(
    /// A page of threads.
    Threads of Thread: "A thread, or its selected fields."
);

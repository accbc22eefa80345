//! Bodies of the streaming protocol. They are read by `routes::protocol`, which reports their
//! errors in the form of the protocol.

use serde_json::Value;
use utoipa::ToSchema;

/// A command of the streaming protocol.
#[derive(Debug, ToSchema)]
pub struct ProtocolCommand {
    /// Number that the answer repeats.
    pub id: i64,
    /// Name of the command: `run.start` or `input.respond`; over a WebSocket also
    /// `subscription.subscribe`, `subscription.unsubscribe`, `subscription.reconnect` and
    /// `agent.getTree`.
    #[schema(examples("run.start"))]
    pub method: String,
    /// Parameters of the command.
    #[schema(value_type = Option<Object>)]
    pub params: Option<Value>,
}

/// A selection of events of a thread.
#[derive(Debug, ToSchema)]
pub struct ProtocolSubscription {
    /// Channels: `values`, `updates`, `messages`, `tools`, `lifecycle`, `input`, `checkpoints`,
    /// `tasks`, `custom`, or `custom:` with the name of a payload.
    #[schema(min_items = 1, max_items = 256, examples(json!(["values", "messages"])))]
    pub channels: Vec<String>,
    /// Prefixes of the namespaces of nested agents; all if empty.
    #[schema(max_items = 256)]
    pub namespaces: Option<Vec<Vec<String>>>,
    /// Maximum number of levels below a prefix.
    #[schema(minimum = 0)]
    pub depth: Option<u64>,
    /// Position after which events are sent.
    pub since: Option<Value>,
}

//! Presentation of a run: facts of the dialect in which a client asked for it.

use serde::{Deserialize, Serialize};

use super::request_echo::RequestEcho;

/// Presentation of a run to clients of one dialect. The gateway builds it. The kernel passes it to
/// the encoder and stores the echo with the run's record; no decision of a run depends on it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPresentation {
    /// `true` to send the human input to `messages` subscribers, as DeerFlow's web UI expects and
    /// LangGraph Platform does not.
    pub echo_input: bool,
    /// `true` to send the run's metadata with each message to `messages` subscribers, as LangGraph
    /// Platform does.
    #[serde(default)]
    pub describe_messages: bool,
    /// Request as clients see it, without secrets: the `kwargs` of the run. Stored in the run's
    /// record, not in the request.
    #[serde(skip)]
    pub request_echo: RequestEcho,
}

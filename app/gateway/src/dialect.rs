//! The two dialects of one API. Every difference between DeerFlow's wire format and the platform's
//! depends on this value.

use std::time::Duration;

use harness::runtime::runs::{DisconnectMode, MultitaskStrategy, ThreadStatus};
use harness::runtime::stream_bridge::ResumeFrom;

/// Dialect of a request, chosen by the router from the path's prefix. The crates below the gateway
/// do not know it. `docs/api.md` lists every difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `/api/...` and `/api/langgraph/...`: the dialect of DeerFlow's web UI.
    DeerFlow,
    /// The root: the dialect of the platform's SDKs.
    Platform,
}

impl Dialect {
    /// `true` for the platform's dialect.
    pub fn is_platform(self) -> bool {
        self == Self::Platform
    }

    /// Line ending of event streams.
    pub fn line_end(self) -> &'static str {
        match self {
            Self::DeerFlow => "\n",
            Self::Platform => "\r\n",
        }
    }

    /// Interval of heartbeats in a silent stream or waiting response.
    pub fn heartbeat(self) -> Duration {
        match self {
            Self::DeerFlow => Duration::from_secs(15),
            Self::Platform => Duration::from_secs(5),
        }
    }

    /// `Cache-Control` of streamed responses. `no-transform` prevents compression by proxies, such
    /// as the one in DeerFlow's web UI: a compressor holds every chunk until the response ends.
    pub fn cache_control(self) -> &'static str {
        match self {
            Self::DeerFlow => "no-cache, no-transform",
            Self::Platform => "no-store, no-transform",
        }
    }

    /// Prefix of `/threads/..` in `Content-Location`. `Location` never has a prefix: clients append
    /// it to their base URL.
    pub fn content_prefix(self) -> &'static str {
        match self {
            Self::DeerFlow => "/api",
            Self::Platform => "",
        }
    }

    /// Default start of a join without a `Last-Event-ID`.
    pub fn join_default(self) -> ResumeFrom {
        match self {
            Self::DeerFlow => ResumeFrom::Start,
            Self::Platform => ResumeFrom::Tail,
        }
    }

    /// Default effect on a run of the disconnect of the client that created it.
    pub fn disconnect_default(self) -> DisconnectMode {
        match self {
            Self::DeerFlow => DisconnectMode::Cancel,
            Self::Platform => DisconnectMode::Continue,
        }
    }

    /// Default multitask strategy for a second run on a busy thread.
    pub fn multitask_default(self) -> MultitaskStrategy {
        match self {
            Self::DeerFlow => MultitaskStrategy::Reject,
            Self::Platform => MultitaskStrategy::Enqueue,
        }
    }

    /// Wire name of a thread's status.
    pub fn thread_status(self, status: ThreadStatus) -> &'static str {
        // Both dialects use `busy`: the web UI tests only for `interrupted` and `error`, and the
        // types of the SDK have no other name for it.
        status.as_str()
    }

    /// Default number of snapshots in a history.
    pub fn history_limit(self) -> u64 {
        match self {
            Self::DeerFlow => 10,
            Self::Platform => 1,
        }
    }

    /// Maximum number of snapshots in a history.
    pub fn max_history_limit(self) -> u64 {
        match self {
            Self::DeerFlow => 100,
            Self::Platform => 1000,
        }
    }

    /// Default page size of a thread search.
    pub fn search_limit(self) -> u64 {
        match self {
            Self::DeerFlow => 100,
            Self::Platform => 10,
        }
    }

    /// Default page size of a run list.
    pub fn run_list_limit(self) -> u64 {
        match self {
            Self::DeerFlow => 100,
            Self::Platform => 10,
        }
    }
}

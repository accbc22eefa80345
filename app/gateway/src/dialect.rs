//! The two ways of speaking one API: everything in which DeerFlow's wire and the platform's differ hangs on this value.

use std::time::Duration;

use harness::runtime::runs::{DisconnectMode, MultitaskStrategy, ThreadStatus};
use harness::runtime::stream_bridge::ResumeFrom;

/// Chosen by the router from the path's prefix; nothing below the gateway knows of it. `docs/api.md` lists every difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `/api/...` and `/api/langgraph/...`: what DeerFlow's web UI expects.
    DeerFlow,
    /// The root: what the platform's SDKs expect.
    Platform,
}

impl Dialect {
    /// Whether it is the platform's.
    pub fn is_platform(self) -> bool {
        self == Self::Platform
    }

    /// What ends a line of an event stream.
    pub fn line_end(self) -> &'static str {
        match self {
            Self::DeerFlow => "\n",
            Self::Platform => "\r\n",
        }
    }

    /// How long a stream or a waiting answer may stay silent.
    pub fn heartbeat(self) -> Duration {
        match self {
            Self::DeerFlow => Duration::from_secs(15),
            Self::Platform => Duration::from_secs(5),
        }
    }

    /// `Cache-Control` of answers that are sent piece by piece. `no-transform` keeps proxies, such as the one in DeerFlow's web
    /// UI, from compressing them: a compressor holds back every piece until the answer ends.
    pub fn cache_control(self) -> &'static str {
        match self {
            Self::DeerFlow => "no-cache, no-transform",
            Self::Platform => "no-store, no-transform",
        }
    }

    /// What stands before `/threads/..` in `Content-Location`. `Location` never has a prefix: clients append it to their base.
    pub fn content_prefix(self) -> &'static str {
        match self {
            Self::DeerFlow => "/api",
            Self::Platform => "",
        }
    }

    /// Where a join begins that names no event.
    pub fn join_default(self) -> ResumeFrom {
        match self {
            Self::DeerFlow => ResumeFrom::Start,
            Self::Platform => ResumeFrom::Tail,
        }
    }

    /// What the creating client's going away means when it did not say.
    pub fn disconnect_default(self) -> DisconnectMode {
        match self {
            Self::DeerFlow => DisconnectMode::Cancel,
            Self::Platform => DisconnectMode::Continue,
        }
    }

    /// What becomes of a second run on a busy thread that did not say.
    pub fn multitask_default(self) -> MultitaskStrategy {
        match self {
            Self::DeerFlow => MultitaskStrategy::Reject,
            Self::Platform => MultitaskStrategy::Enqueue,
        }
    }

    /// The word for a thread's status.
    pub fn thread_status(self, status: ThreadStatus) -> &'static str {
        // Both dialects say `busy`: the web UI tests only for `interrupted` and `error`, and the SDK types know no other word.
        status.as_str()
    }

    /// How many snapshots a history shows when nobody says.
    pub fn history_limit(self) -> u64 {
        match self {
            Self::DeerFlow => 10,
            Self::Platform => 1,
        }
    }

    /// The most snapshots of one history.
    pub fn history_most(self) -> u64 {
        match self {
            Self::DeerFlow => 100,
            Self::Platform => 1000,
        }
    }

    /// How many threads a search finds when nobody says.
    pub fn search_limit(self) -> u64 {
        match self {
            Self::DeerFlow => 100,
            Self::Platform => 10,
        }
    }

    /// How many runs a list shows when nobody says.
    pub fn run_list_limit(self) -> u64 {
        match self {
            Self::DeerFlow => 100,
            Self::Platform => 10,
        }
    }
}

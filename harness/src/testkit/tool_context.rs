//! Context of a tool call, for tests of single tools.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::clock::SystemClock;
use crate::ids::{RunId, SeededIds, ThreadId};
use crate::runtime::actor_context::ActorContext;
use crate::runtime::agent::{CallLog, EventSink, RunContext};
use crate::runtime::runs::NodeSelector;
use crate::state::ThreadState;
use crate::tools::ToolContext;

/// Returns a call by the user `ann` in a run `r` on a thread `t`, whose events are discarded.
///
/// # Panics
/// Never: its ids are well-formed.
pub fn tool_context() -> ToolContext {
    let (sink, _events) = EventSink::channel();
    let run = RunContext {
        thread_id: ThreadId::parse("t").expect("an id"),
        run_id: RunId::parse("r").expect("an id"),
        actor: ActorContext::user("ann"),
        options: Arc::default(),
        tags: vec![],
        namespace: "".into(),
        recursion_limit: 100,
        interrupt_before: NodeSelector::None,
        interrupt_after: NodeSelector::None,
        clock: Arc::new(SystemClock),
        ids: Arc::new(SeededIds::new(1)),
        sink,
        calls: CallLog::default(),
        token: CancellationToken::new(),
    };
    ToolContext {
        run,
        call_id: "c".to_owned(),
        key: "k".to_owned(),
        namespace: "tools:t".to_owned(),
        state: Arc::new(ThreadState::default()),
        answers: vec![],
        approval: None,
        nested: None,
    }
}

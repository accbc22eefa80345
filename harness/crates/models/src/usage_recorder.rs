//! Records the usage of auxiliary model calls outside of runs: in the ledger of the charged user,
//! and in the event store of the thread.

use std::sync::Arc;

use serde_json::{Map, json};

use super::Caller;
use deerflow_core::clock::Clock;
use deerflow_core::ids::{IdSource, RunId, ThreadId};
use deerflow_core::messages::UsageMetadata;
use deerflow_runtime::agent::{AgentEvent, EventReceiver, EventSink};
use deerflow_runtime::runs::store::{
    AuxiliaryUsage, NewRunEvent, RunEventStore, UsageLedger, category,
};

/// Event type of usage records. Their content is `{caller, model, usage}`.
pub const AUXILIARY_USAGE: &str = "llm.aside.usage";

/// Stores that usage is recorded in.
#[derive(Debug, Clone)]
pub struct UsageRecorder {
    /// Event store of the threads.
    pub events: Arc<dyn RunEventStore>,
    /// Ledger of the users' usage.
    pub ledger: Arc<dyn UsageLedger>,
    /// Source of the current time.
    pub clock: Arc<dyn Clock>,
    /// Source of ids.
    pub ids: Arc<dyn IdSource>,
}

/// Collects the usage of one operation until it is recorded.
#[derive(Debug)]
pub struct UsageScope<'a> {
    recorder: &'a UsageRecorder,
    sink: EventSink,
    events: EventReceiver,
}

impl UsageRecorder {
    /// Opens a scope for one operation.
    pub fn open(&self) -> UsageScope<'_> {
        let (sink, events) = EventSink::channel();
        UsageScope {
            recorder: self,
            sink,
            events,
        }
    }
}

impl UsageScope<'_> {
    /// Returns the caller for auxiliary requests in this scope.
    pub fn caller(&self) -> Caller<'_> {
        Caller {
            caller: "middleware",
            clock: &*self.recorder.clock,
            ids: &*self.recorder.ids,
            sink: Some(&self.sink),
        }
    }

    #[doc(hidden)]
    #[deprecated(note = "use `caller`")]
    pub fn asker(&self) -> Caller<'_> {
        self.caller()
    }

    /// Records the collected usage for the user and, if there is one, the thread. Errors are only
    /// logged: they do not affect the answer.
    pub async fn record(mut self, thread: Option<&ThreadId>, user: Option<&str>) {
        let (mut costs, mut rows) = (Vec::new(), Vec::new());
        while let Some(event) = self.events.try_recv() {
            if let AgentEvent::ModelCall(call) = event
                && let Some(usage) = &call.usage
            {
                let entry = self.recorder.usage_of(user, &call.model, usage);
                rows.extend(thread.and_then(|thread| row(thread, &entry, &call.caller)));
                costs.push(entry);
            }
        }
        if costs.is_empty() {
            return;
        }
        if let Err(error) = self.recorder.ledger.book(costs).await {
            tracing::warn!(%error, user_id = user, "cannot record the usage of an auxiliary model call");
        }
        if !rows.is_empty()
            && let Err(error) = self.recorder.events.append(rows).await
        {
            tracing::warn!(%error, ?thread, "cannot append the usage of an auxiliary model call to the event store");
        }
    }

    #[doc(hidden)]
    #[deprecated(note = "use `record`")]
    pub async fn book(self, thread: Option<&ThreadId>, user: Option<&str>) {
        self.record(thread, user).await;
    }
}

impl UsageRecorder {
    fn usage_of(&self, user: Option<&str>, model: &str, usage: &UsageMetadata) -> AuxiliaryUsage {
        AuxiliaryUsage {
            id: format!("aside-{}", self.ids.random()),
            user_id: user.map(str::to_owned),
            model: model.to_owned(),
            usage: usage.clone(),
            created_at: self.clock.now(),
        }
    }
}

fn row(thread: &ThreadId, entry: &AuxiliaryUsage, caller: &str) -> Option<NewRunEvent> {
    Some(NewRunEvent {
        thread_id: thread.clone(),
        run_id: RunId::parse(entry.id.clone()).ok()?,
        user_id: entry.user_id.clone(),
        event_type: AUXILIARY_USAGE.to_owned(),
        category: category::USAGE.to_owned(),
        content: json!({ "caller": caller, "model": entry.model, "usage": entry.usage }).into(),
        metadata: Map::new(),
        created_at: entry.created_at,
    })
}

//! Books what the framework asks models outside of runs: on the user who pays, and in the journal of the thread that it is about.

use std::sync::Arc;

use serde_json::{Map, json};
use tokio::sync::mpsc::UnboundedReceiver;

use super::Asker;
use crate::clock::Clock;
use crate::ids::{IdSource, RunId, ThreadId};
use crate::messages::UsageMetadata;
use crate::runtime::agent::{AgentEvent, EventSink};
use crate::runtime::runs::store::{AsideCost, AsideLedger, NewRunEvent, RunEventStore, category};

/// The type of the rows: `{caller, model, usage}`.
pub const ASIDE_USAGE: &str = "llm.aside.usage";

/// Where such costs are booked.
#[derive(Debug, Clone)]
pub struct Till {
    /// The journal.
    pub events: Arc<dyn RunEventStore>,
    /// What users pay for.
    pub ledger: Arc<dyn AsideLedger>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Ids.
    pub ids: Arc<dyn IdSource>,
}

/// What is being asked, until it is booked.
#[derive(Debug)]
pub struct Tab<'a> {
    till: &'a Till,
    sink: EventSink,
    heard: UnboundedReceiver<AgentEvent>,
}

impl Till {
    /// Opens a tab.
    pub fn open(&self) -> Tab<'_> {
        let (sink, heard) = EventSink::channel();
        Tab {
            till: self,
            sink,
            heard,
        }
    }
}

impl Tab<'_> {
    /// Who asks on this tab.
    pub fn asker(&self) -> Asker<'_> {
        Asker {
            caller: "middleware",
            clock: &*self.till.clock,
            ids: &*self.till.ids,
            sink: Some(&self.sink),
        }
    }

    /// Books what was asked on its user, and on the thread that it is about, if there is one. That it cannot be booked takes nothing
    /// from the answer.
    pub async fn book(mut self, thread: Option<&ThreadId>, user: Option<&str>) {
        let (mut costs, mut rows) = (Vec::new(), Vec::new());
        while let Ok(event) = self.heard.try_recv() {
            if let AgentEvent::ModelCall(call) = event
                && let Some(usage) = &call.usage
            {
                let cost = self.till.cost(user, &call.model, usage);
                rows.extend(thread.and_then(|thread| row(thread, &cost, &call.caller)));
                costs.push(cost);
            }
        }
        if costs.is_empty() {
            return;
        }
        if let Err(error) = self.till.ledger.book(costs).await {
            tracing::warn!(%error, user_id = user, "what a model call cost could not be booked");
        }
        if !rows.is_empty()
            && let Err(error) = self.till.events.append(rows).await
        {
            tracing::warn!(%error, ?thread, "what a model call cost could not be journaled");
        }
    }
}

impl Till {
    fn cost(&self, user: Option<&str>, model: &str, usage: &UsageMetadata) -> AsideCost {
        AsideCost {
            id: format!("aside-{}", self.ids.random()),
            user_id: user.map(str::to_owned),
            model: model.to_owned(),
            usage: usage.clone(),
            created_at: self.clock.now(),
        }
    }
}

fn row(thread: &ThreadId, cost: &AsideCost, caller: &str) -> Option<NewRunEvent> {
    Some(NewRunEvent {
        thread_id: thread.clone(),
        run_id: RunId::parse(cost.id.clone()).ok()?,
        user_id: cost.user_id.clone(),
        event_type: ASIDE_USAGE.to_owned(),
        category: category::USAGE.to_owned(),
        content: json!({ "caller": caller, "model": cost.model, "usage": cost.usage }),
        metadata: Map::new(),
        created_at: cost.created_at,
    })
}

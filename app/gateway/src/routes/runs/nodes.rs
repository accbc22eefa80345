//! `GET .../runs/{r}/nodes`: the states of a flow's nodes in a run.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use deerflow_flow::compiled::CompiledFlow;
use deerflow_flow::events::NodeStates;
use harness::runtime::actor_context::{Owner, effective_user_id};
use harness::runtime::agent::AssistantPin;
use harness::runtime::runs::RunRecord;
use harness::runtime::runs::store::{EventQuery, NODE_EVENT, NODE_EVENTS_OMITTED};
use serde_json::json;

use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::Ids;
use crate::flows::flow_slug;
use crate::queries::threads::{require_run, require_thread};
use crate::routes::{App, JsonResult};
use crate::state::GatewayState;

/// Number of journal rows that are read at once.
const PAGE: usize = 200;

/// Returns the nodes of the flow with their states, from the run's journal. A run of another agent
/// has none.
pub(crate) async fn nodes(State(state): App, dialect: Dialect, ids: Ids) -> JsonResult {
    let (thread, run) = (ids.thread()?, ids.run()?);
    require_thread(&state, &thread).await?;
    let run = require_run(&state, &thread, &run, dialect).await?;
    let Some(slug) = flow_slug(&run.assistant) else {
        return Ok(response(&run, &Journal::default(), None));
    };
    let mut journal = journal_of(&state, &run).await?;
    if run.status.is_terminal() {
        journal.states.end();
    }
    let flow = flow_of(&state, slug, journal.states.content_hash()).await?;
    Ok(response(&run, &journal, flow.as_deref()))
}

/// Progress of the nodes as the journal has it.
#[derive(Default)]
struct Journal {
    states: NodeStates,
    /// `true` if the journal has no rows about the newest progress, because there were too many.
    is_incomplete: bool,
}

async fn journal_of(state: &GatewayState, run: &RunRecord) -> Result<Journal, ApiError> {
    let mut journal = Journal::default();
    let mut query = EventQuery {
        run_id: Some(run.run_id.clone()),
        event_types: vec![NODE_EVENT.to_owned(), NODE_EVENTS_OMITTED.to_owned()],
        limit: PAGE,
        ..EventQuery::default()
    };
    let events = &state.run_services.events;
    loop {
        let page = events.list(&run.thread_id, &query, &Owner::Auto).await?;
        for row in &page {
            if row.event.event_type == NODE_EVENTS_OMITTED {
                journal.is_incomplete = true;
            } else {
                journal.states.apply(&row.event.content);
            }
        }
        if page.len() < PAGE {
            return Ok(journal);
        }
        query.after_seq = page.last().map(|row| row.seq);
    }
}

/// Returns the flow as the run executes it. `None` if its content is no longer stored or no longer
/// valid.
async fn flow_of(
    state: &GatewayState,
    slug: &str,
    content_hash: Option<&str>,
) -> Result<Option<Arc<CompiledFlow>>, ApiError> {
    let (flows, user) = (&state.agent_services.flows, effective_user_id());
    let version = match content_hash {
        Some(hash) => {
            let pin = AssistantPin {
                version: 0,
                content_hash: hash.to_owned(),
            };
            flows.pinned(&user, slug, &pin).await?
        }
        None => flows.find(&user, slug).await?,
    };
    Ok(match version {
        Some(version) => flows.compiled(&version).await.ok(),
        None => None,
    })
}

fn response(
    run: &RunRecord,
    journal: &Journal,
    flow: Option<&CompiledFlow>,
) -> Json<serde_json::Value> {
    Json(json!({
        "run_id": run.run_id,
        "thread_id": run.thread_id,
        "assistant_id": run.assistant,
        "status": run.status.as_str(),
        "content_hash": journal.states.content_hash(),
        "is_incomplete": journal.is_incomplete,
        "nodes": journal.states.to_json(flow),
    }))
}

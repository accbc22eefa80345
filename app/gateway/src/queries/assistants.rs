//! Assistants as clients see them: those of the graphs, with each user's changes, and those created
//! by users.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use deerflow_domain::assistants::{Assistant, AssistantContent, AssistantSearch, NewAssistant};
use harness::runtime::actor_context::{Owner, effective_user_id, required_user_id};
use harness::runtime::agent::{AssistantDetails, AssistantInfo};
use serde_json::{Map, json};
use uuid::{Builder, Uuid, Version};

use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::requests::assistant_uuid;
use crate::state::GatewayState;

/// Returns the unchanged assistant of a graph.
/// `started_at` is the time of creation of an assistant that has none.
pub(crate) fn default_of(details: AssistantDetails, started_at: DateTime<Utc>) -> Assistant {
    let AssistantInfo { name, description } = details.info;
    let created_at = details.created_at.unwrap_or(started_at);
    let mut metadata = Map::from_iter([("created_by".to_owned(), json!("system"))]);
    metadata.extend(details.metadata);
    Assistant {
        id: assistant_uuid(&name),
        user_id: None,
        version: 1,
        content: AssistantContent {
            graph: name.clone(),
            name,
            description,
            metadata,
            ..AssistantContent::default()
        },
        created_at,
        updated_at: details.updated_at.unwrap_or(created_at),
    }
}

/// Returns the unchanged assistants of all graphs.
pub(crate) async fn defaults(state: &GatewayState) -> Vec<Assistant> {
    state
        .agent_services
        .assistants
        .list_details()
        .await
        .into_iter()
        .map(|details| default_of(details, state.process.started_at))
        .collect()
}

/// Returns the unchanged assistant of the graph of this name.
pub(crate) async fn default_named(state: &GatewayState, graph: &str) -> Option<Assistant> {
    let details = state.agent_services.assistants.details(graph).await?;
    Some(default_of(details, state.process.started_at))
}

/// Returns the unchanged assistant of the graph with this id.
pub(crate) async fn default_with_id(state: &GatewayState, id: Uuid) -> Option<Assistant> {
    let graph = graph_with_id(state, id).await?;
    default_named(state, &graph.name).await
}

/// Returns the graph whose assistant has this id. Other graphs are read only if the id is not that
/// of the default graph and can be that of a graph.
pub(crate) async fn graph_with_id(state: &GatewayState, id: Uuid) -> Option<AssistantInfo> {
    if id.get_version() != Some(Version::Sha1) {
        return None;
    }
    let assistants = &state.agent_services.assistants;
    let is_requested = |info: &AssistantInfo| assistant_uuid(&info.name) == id;
    match assistants.default_assistant().await.filter(is_requested) {
        Some(default) => Some(default),
        None => assistants.list().await.into_iter().find(is_requested),
    }
}

/// Returns the graphs among which a run request with this `assistant_id` resolves its assistant:
/// the requested one, the default one if none is requested, or all if the request names an unknown
/// graph on the platform, whose error lists them.
pub(crate) async fn graphs_of_request(
    state: &GatewayState,
    sent: Option<&str>,
    dialect: Dialect,
) -> Vec<AssistantInfo> {
    let assistants = &state.agent_services.assistants;
    let Some(sent) = sent else {
        return Vec::from_iter(assistants.default_assistant().await);
    };
    let found = match assistants.find(sent).await {
        Some(found) => Some(found),
        None => match Uuid::parse_str(sent) {
            Ok(id) => graph_with_id(state, id).await,
            Err(_) if dialect.is_platform() => return assistants.list().await,
            Err(_) => None,
        },
    };
    Vec::from_iter(found)
}

/// Id of an assistant, and the id of its stored versions.
#[derive(Debug)]
pub(crate) struct AssistantEntry {
    id: Uuid,
    /// Id of the assistant in the store.
    pub(crate) stored_id: Uuid,
    /// The unchanged assistant, if it belongs to a graph.
    pub(crate) default: Option<Assistant>,
}

impl AssistantEntry {
    /// Returns the entry of the actor's assistant with this id; `None` if no assistant can have the
    /// id. Each user's changes of a graph's assistant are stored separately.
    pub(crate) async fn of(state: &GatewayState, id: Uuid) -> Option<Self> {
        match default_with_id(state, id).await {
            Some(default) => Some(Self::customized(default)),
            None => (!is_reserved(id)).then_some(Self {
                id,
                stored_id: id,
                default: None,
            }),
        }
    }

    /// Returns the entry of the actor's changes of a graph's assistant.
    pub(super) fn customized(default: Assistant) -> Self {
        let mixed = Uuid::new_v5(&default.id, effective_user_id().as_bytes());
        Self {
            id: default.id,
            stored_id: Builder::from_custom_bytes(mixed.into_bytes()).into_uuid(),
            default: Some(default),
        }
    }

    /// Returns the stored assistant.
    pub(super) async fn stored(&self, state: &GatewayState) -> Result<Option<Assistant>, ApiError> {
        Ok(state
            .agent_services
            .assistant_store
            .get(self.stored_id, &Owner::Auto)
            .await?
            .map(|stored| self.with_public_id(stored)))
    }

    /// Returns the assistant with the user's changes.
    async fn current(self, state: &GatewayState) -> Result<Option<Assistant>, ApiError> {
        Ok(self.stored(state).await?.or(self.default))
    }

    /// Stores the first version of a graph's assistant, so that further versions can follow.
    pub(crate) async fn prepare(&self, state: &GatewayState) -> Result<(), ApiError> {
        if let Some(Assistant {
            content,
            created_at,
            ..
        }) = self.default.clone()
        {
            let user_id =
                Some(required_user_id().map_err(|error| ApiError::Internal(error.to_string()))?);
            state
                .agent_services
                .assistant_store
                .create(NewAssistant {
                    id: self.stored_id,
                    user_id,
                    content,
                    at: created_at,
                })
                .await?;
        }
        Ok(())
    }

    /// Returns the stored assistant with its public id.
    pub(crate) fn with_public_id(&self, stored: Assistant) -> Assistant {
        Assistant {
            id: self.id,
            ..stored
        }
    }
}

/// `true` if the id is one under which changes of graph assistants are stored: clients neither
/// choose nor see such ids.
pub(crate) fn is_reserved(id: Uuid) -> bool {
    id.get_version() == Some(Version::Custom)
}

/// Returns the assistant with this id, if it belongs to a graph or to the actor.
pub(crate) async fn find(state: &GatewayState, id: Uuid) -> Result<Option<Assistant>, ApiError> {
    match AssistantEntry::of(state, id).await {
        Some(entry) => entry.current(state).await,
        None => Ok(None),
    }
}

/// Rejects an unknown graph.
pub(crate) async fn require_graph(state: &GatewayState, graph: &str) -> Result<(), ApiError> {
    let assistants = &state.agent_services.assistants;
    if assistants.find(graph).await.is_some() {
        return Ok(());
    }
    let names = assistants
        .list()
        .await
        .iter()
        .map(|info| format!("'{}'", info.name))
        .collect::<Vec<_>>()
        .join(", ");
    let graph: String = graph.chars().take(80).collect();
    Err(ApiError::NotFound(format!(
        "Graph '{graph}' not found. Expected one of: [{names}]"
    )))
}

/// Returns a page of all matching assistants in one order.
pub(crate) async fn search(
    state: &GatewayState,
    search: &AssistantSearch,
) -> Result<Vec<Assistant>, ApiError> {
    let (mut own, others) = graph_assistants(state, search).await?;
    own.sort_by(|a, b| search.order(a, b));
    let window = stored_window(&others, own.len());
    let stored = state
        .agent_services
        .assistant_store
        .search(&window, &Owner::Auto)
        .await?;
    Ok(merged(search, own, stored, window.offset))
}

/// Returns the number of matches, ignoring limit and offset.
pub(crate) async fn count(state: &GatewayState, search: &AssistantSearch) -> Result<u64, ApiError> {
    let (own, others) = graph_assistants(state, search).await?;
    Ok(own.len() as u64
        + state
            .agent_services
            .assistant_store
            .count(&others, &Owner::Auto)
            .await?)
}

/// Returns the matching graph assistants with the actor's changes, and the search for all others.
async fn graph_assistants(
    state: &GatewayState,
    search: &AssistantSearch,
) -> Result<(Vec<Assistant>, AssistantSearch), ApiError> {
    let entries: Vec<AssistantEntry> = defaults(state)
        .await
        .into_iter()
        .map(AssistantEntry::customized)
        .collect();
    let ids: Vec<Uuid> = entries.iter().map(|entry| entry.stored_id).collect();
    let stored = state
        .agent_services
        .assistant_store
        .get_many(&ids, &Owner::Auto)
        .await?;
    let mut stored: HashMap<Uuid, Assistant> = stored
        .into_iter()
        .map(|assistant| (assistant.id, assistant))
        .collect();
    let own = entries
        .into_iter()
        .filter_map(|entry| match stored.remove(&entry.stored_id) {
            Some(changed) => Some(entry.with_public_id(changed)),
            None => entry.default,
        })
        .filter(|assistant| search.matches(&assistant.content))
        .collect();
    let mut others = search.clone();
    others.except.extend(ids);
    Ok((own, others))
}

/// Returns the search for the stored assistants that can be on the page if up to `own` graph
/// assistants precede them.
fn stored_window(search: &AssistantSearch, own: usize) -> AssistantSearch {
    AssistantSearch {
        offset: search.offset.saturating_sub(own),
        limit: search.limit.saturating_add(own),
        ..search.clone()
    }
}

/// Merges `own` and a window of stored assistants, both sorted, into the page. Only stored
/// assistants were skipped before the window, so from position `own.len()` of the merged list on
/// all positions are exact.
fn merged(
    search: &AssistantSearch,
    own: Vec<Assistant>,
    stored: Vec<Assistant>,
    skipped: usize,
) -> Vec<Assistant> {
    let mut all = own;
    all.extend(stored);
    all.sort_by(|a, b| search.order(a, b));
    all.into_iter()
        .skip(search.offset - skipped)
        .take(search.limit)
        .collect()
}

#[cfg(test)]
mod tests {
    use deerflow_domain::assistants::AssistantSort;
    use proptest::prelude::*;

    use super::*;

    fn assistant(n: u128, key: i64) -> Assistant {
        let info = AssistantInfo {
            name: n.to_string(),
            description: None,
        };
        Assistant {
            id: Uuid::from_u128(n),
            ..default_of(
                info.into(),
                DateTime::from_timestamp(key, 0).unwrap_or_default(),
            )
        }
    }

    proptest! {
        #[test]
        fn merged_pages_equal_pages_of_one_list(
            keys in proptest::collection::vec((0..6_i64, any::<bool>()), 0..20), offset in 0..25_usize, limit in 1..10_usize, ascending: bool,
        ) {
            let search = AssistantSearch { sort_by: AssistantSort::CreatedAt, ascending, limit, offset, ..AssistantSearch::default() };
            let mut all: Vec<(Assistant, bool)> = keys.iter().zip(1..).map(|((key, own), n)| (assistant(n, *key), *own)).collect();
            all.sort_by(|(a, _), (b, _)| search.order(a, b));
            let of = |is_own: bool| all.iter().filter(|(_, own)| *own == is_own).map(|(it, _)| it.clone()).collect::<Vec<_>>();
            let window = stored_window(&search, of(true).len());
            let stored = of(false).into_iter().skip(window.offset).take(window.limit).collect();
            let page = merged(&search, of(true), stored, window.offset);
            let expected: Vec<_> = all.iter().map(|(it, _)| it.clone()).skip(offset).take(limit).collect();
            prop_assert_eq!(page, expected);
        }
    }
}

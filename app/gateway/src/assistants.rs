//! Assistants as clients find them: those that come with a graph, each as its user changed it, and those that users made.

use chrono::{DateTime, Utc};
use deerflow_domain::assistants::{Assistant, AssistantContent, AssistantSearch, NewAssistant};
use harness::runtime::actor_context::{Owner, effective_user_id, required_user_id};
use harness::runtime::agent::AssistantInfo;
use harness::runtime::runs::RunSpec;
use serde_json::{Map, Value, json};
use uuid::{Builder, Uuid, Version};

use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::input::assistant_uuid;
use crate::state::GatewayState;

/// The assistant that comes with a graph, as it is before a user changes it.
pub(crate) fn default_of(info: &AssistantInfo, made: DateTime<Utc>) -> Assistant {
    Assistant {
        id: assistant_uuid(&info.name),
        user_id: None,
        version: 1,
        content: AssistantContent {
            graph: info.name.clone(),
            name: info.name.clone(),
            description: info.description.clone(),
            metadata: Map::from_iter([("created_by".to_owned(), json!("system"))]),
            ..AssistantContent::default()
        },
        created_at: made,
        updated_at: made,
    }
}

/// The assistants of all graphs.
pub(crate) async fn defaults(state: &GatewayState) -> Vec<Assistant> {
    state
        .assistants
        .list()
        .await
        .iter()
        .map(|info| default_of(info, state.started_at))
        .collect()
}

/// An assistant's id, and where its versions are kept.
#[derive(Debug)]
pub(crate) struct Place {
    id: Uuid,
    /// The id under which the store has it.
    pub(crate) kept: Uuid,
    /// The assistant before its first change, if it comes with a graph.
    pub(crate) default: Option<Assistant>,
}

impl Place {
    /// The place of an assistant of the actor's, if there can be one of this id. What a user makes of a graph's assistant is kept
    /// apart from what others make of it.
    pub(crate) async fn of(state: &GatewayState, id: Uuid) -> Option<Self> {
        let default = defaults(state)
            .await
            .into_iter()
            .find(|assistant| assistant.id == id);
        match default {
            Some(default) => Some(Self::changed(default)),
            None => (!is_reserved(id)).then_some(Self {
                id,
                kept: id,
                default: None,
            }),
        }
    }

    /// Where the actor's changes of a graph's assistant are kept.
    fn changed(default: Assistant) -> Self {
        let mixed = Uuid::new_v5(&default.id, effective_user_id().as_bytes());
        Self {
            id: default.id,
            kept: Builder::from_custom_bytes(mixed.into_bytes()).into_uuid(),
            default: Some(default),
        }
    }

    /// What the store has of it.
    async fn stored(&self, state: &GatewayState) -> Result<Option<Assistant>, ApiError> {
        Ok(state
            .assistant_store
            .get(self.kept, &Owner::Auto)
            .await?
            .map(|stored| self.shown(stored)))
    }

    /// The assistant as it is now.
    async fn now(self, state: &GatewayState) -> Result<Option<Assistant>, ApiError> {
        Ok(self.stored(state).await?.or(self.default))
    }

    /// Makes the first version of a graph's assistant durable, so that there can be others.
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
                .assistant_store
                .create(NewAssistant {
                    id: self.kept,
                    user_id,
                    content,
                    at: created_at,
                })
                .await?;
        }
        Ok(())
    }

    /// What the store has, under the id by which clients know it.
    pub(crate) fn shown(&self, stored: Assistant) -> Assistant {
        Assistant {
            id: self.id,
            ..stored
        }
    }
}

/// Whether an id is of the kind under which changes of graphs' assistants are kept: no client chooses or sees one.
pub(crate) fn is_reserved(id: Uuid) -> bool {
    id.get_version() == Some(Version::Custom)
}

/// The assistant with this id, if it comes with a graph or is the actor's.
pub(crate) async fn find(state: &GatewayState, id: Uuid) -> Result<Option<Assistant>, ApiError> {
    match Place::of(state, id).await {
        Some(place) => place.now(state).await,
        None => Ok(None),
    }
}

/// Refuses a graph that no agent has.
pub(crate) async fn require_graph(state: &GatewayState, graph: &str) -> Result<(), ApiError> {
    let known = state.assistants.list().await;
    if known.iter().any(|info| info.name == graph) {
        return Ok(());
    }
    let names = known
        .iter()
        .map(|info| format!("'{}'", info.name))
        .collect::<Vec<_>>()
        .join(", ");
    let graph: String = graph.chars().take(80).collect();
    Err(ApiError::NotFound(format!(
        "Graph '{graph}' not found. Expected one of: [{names}]"
    )))
}

/// A page of all assistants that match, in one order.
pub(crate) async fn search(
    state: &GatewayState,
    search: &AssistantSearch,
) -> Result<Vec<Assistant>, ApiError> {
    let (mut own, others) = of_graphs(state, search).await?;
    own.sort_by(|a, b| search.order(a, b));
    let window = stored_window(&others, own.len());
    let stored = state.assistant_store.search(&window, &Owner::Auto).await?;
    Ok(merged(search, own, stored, window.offset))
}

/// How many match, limit and offset aside.
pub(crate) async fn count(state: &GatewayState, search: &AssistantSearch) -> Result<u64, ApiError> {
    let (own, others) = of_graphs(state, search).await?;
    Ok(own.len() as u64 + state.assistant_store.count(&others, &Owner::Auto).await?)
}

/// The graphs' assistants that match, as the actor made them, and the search for all others.
async fn of_graphs(
    state: &GatewayState,
    search: &AssistantSearch,
) -> Result<(Vec<Assistant>, AssistantSearch), ApiError> {
    let (mut own, mut others) = (Vec::new(), search.clone());
    for place in defaults(state).await.into_iter().map(Place::changed) {
        others.except.push(place.kept);
        own.extend(
            place
                .now(state)
                .await?
                .filter(|assistant| search.matches(&assistant.content)),
        );
    }
    Ok((own, others))
}

/// The stored assistants that can be on the page when up to `own` others may stand between them.
fn stored_window(search: &AssistantSearch, own: usize) -> AssistantSearch {
    AssistantSearch {
        offset: search.offset.saturating_sub(own),
        limit: search.limit.saturating_add(own),
        ..search.clone()
    }
}

/// The page out of `own` and a window of what is stored, both in order. Before the window only stored ones were skipped, so what
/// comes `own.len()` places behind its beginning or later stands at its true place.
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

/// What an assistant adds to the body of a run: what the body says itself stands.
pub(crate) fn lend(content: &AssistantContent, body: &mut Map<String, Value>) {
    body.insert("assistant_id".to_owned(), content.graph.as_str().into());
    let unreadable = |part: &&str| {
        body.get(*part)
            .is_some_and(|value| !value.is_null() && !value.is_object())
    };
    if ["config", "context", "metadata"].iter().any(unreadable) {
        // The reader of the body says what is wrong with it.
        return;
    }
    let mut taken = |part: &str| object(body.shift_remove(part));
    let (mut sent, sent_context, sent_metadata) =
        (taken("config"), taken("context"), taken("metadata"));
    let configurable = object(sent.shift_remove("configurable"));
    let of_config = object(sent.get("metadata").cloned());
    let tags: Vec<Value> = [&content.config, &sent]
        .iter()
        .filter_map(|config| config.get("tags")?.as_array())
        .flatten()
        .cloned()
        .collect();
    let mut config = over(&content.config, sent);
    config.shift_remove("configurable");
    if !tags.is_empty() {
        config.insert("tags".to_owned(), tags.into());
    }
    // Both ways to say it must not be used at once.
    if configurable.is_empty() {
        body.insert(
            "context".to_owned(),
            over(&content.context, sent_context).into(),
        );
    } else {
        config.insert(
            "configurable".to_owned(),
            over(&content.context, configurable).into(),
        );
        body.insert("context".to_owned(), sent_context.into());
    }
    body.insert("config".to_owned(), config.into());
    body.insert(
        "metadata".to_owned(),
        over(&over(&content.metadata, of_config), sent_metadata).into(),
    );
}

/// Puts an assistant that a user made or changed into the body of a run that names it, and gives back its id.
pub(crate) async fn chosen_assistant(
    state: &GatewayState,
    dialect: Dialect,
    mut body: Map<String, Value>,
) -> Result<(Map<String, Value>, Option<Uuid>), ApiError> {
    let Some(sent) = body
        .get("assistant_id")
        .and_then(Value::as_str)
        .filter(|_| dialect.is_platform())
    else {
        return Ok((body, None));
    };
    let place = match Uuid::parse_str(sent) {
        Ok(id) => Place::of(state, id).await,
        Err(_) => defaults(state)
            .await
            .into_iter()
            .find(|assistant| assistant.content.graph == sent)
            .map(Place::changed),
    };
    let Some(place) = place else {
        return Ok((body, None));
    };
    // The assistant of a graph adds nothing while it is as it came, and the reader of the body knows its id.
    let Some(made) = place.stored(state).await? else {
        return Ok((body, None));
    };
    lend(&made.content, &mut body);
    Ok((body, Some(made.id)))
}

/// The run as one of this assistant, not of the one that comes with its graph.
pub(crate) fn attributed(mut spec: RunSpec, assistant: Option<Uuid>) -> RunSpec {
    if let Some(id) = assistant {
        spec.metadata
            .insert("assistant_id".to_owned(), id.to_string().into());
        if let Some(echo) = spec.kwargs.pointer_mut("/config/configurable/assistant_id") {
            *echo = id.to_string().into();
        }
    }
    spec
}

fn object(value: Option<Value>) -> Map<String, Value> {
    match value {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

fn over(below: &Map<String, Value>, above: Map<String, Value>) -> Map<String, Value> {
    below.clone().into_iter().chain(above).collect()
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
            ..default_of(&info, DateTime::from_timestamp(key, 0).unwrap_or_default())
        }
    }

    proptest! {
        #[test]
        fn pages_of_both_kinds_together_are_those_of_one_list(
            keys in proptest::collection::vec((0..6_i64, any::<bool>()), 0..20), offset in 0..25_usize, limit in 1..10_usize, ascending: bool,
        ) {
            let search = AssistantSearch { sort_by: AssistantSort::CreatedAt, ascending, limit, offset, ..AssistantSearch::default() };
            let mut all: Vec<(Assistant, bool)> = keys.iter().zip(1..).map(|((key, own), n)| (assistant(n, *key), *own)).collect();
            all.sort_by(|(a, _), (b, _)| search.order(a, b));
            let of = |wanted: bool| all.iter().filter(|(_, own)| *own == wanted).map(|(it, _)| it.clone()).collect::<Vec<_>>();
            let window = stored_window(&search, of(true).len());
            let stored = of(false).into_iter().skip(window.offset).take(window.limit).collect();
            let page = merged(&search, of(true), stored, window.offset);
            let expected: Vec<_> = all.iter().map(|(it, _)| it.clone()).skip(offset).take(limit).collect();
            prop_assert_eq!(page, expected);
        }
    }

    fn lent(content: Value, mut body: Value) -> Value {
        let map = |key: &str| content[key].as_object().cloned().unwrap_or_default();
        let content = AssistantContent {
            graph: "g".to_owned(),
            config: map("config"),
            context: map("context"),
            metadata: map("metadata"),
            ..AssistantContent::default()
        };
        lend(&content, body.as_object_mut().unwrap());
        body
    }

    #[test]
    fn an_assistant_lends_what_the_run_does_not_say_itself() {
        let content = json!({
            "config": { "tags": ["a"], "recursion_limit": 7, "configurable": { "model_name": "m", "x": 1 } },
            "context": { "model_name": "m", "x": 1 },
            "metadata": { "k": "assistant", "z": 1 },
        });
        assert_eq!(
            lent(
                content.clone(),
                json!({ "assistant_id": "..", "config": { "metadata": { "k": "config" } } })
            ),
            json!({
                "assistant_id": "g",
                "config": { "tags": ["a"], "recursion_limit": 7, "metadata": { "k": "config" } },
                "context": { "model_name": "m", "x": 1 },
                "metadata": { "k": "config", "z": 1 },
            })
        );
        let said = lent(
            content,
            json!({
                "config": { "tags": ["b"], "recursion_limit": 9, "configurable": { "x": 2 } },
                "metadata": { "k": "run" },
            }),
        );
        assert_eq!(
            said["config"],
            json!({ "tags": ["a", "b"], "recursion_limit": 9, "configurable": { "model_name": "m", "x": 2 } })
        );
        assert_eq!(
            (&said["metadata"]["k"], &said["context"]),
            (&json!("run"), &json!({}))
        );
        let wrong = lent(json!({ "context": { "a": 1 } }), json!({ "context": 5 }));
        assert_eq!(wrong, json!({ "assistant_id": "g", "context": 5 }));
    }
}

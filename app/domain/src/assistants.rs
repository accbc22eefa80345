//! Assistants: a graph with a configuration under a name, in versions.

use std::cmp::Ordering;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use harness::runtime::actor_context::Owner;
use harness::runtime::runs::store::StoreError;
use serde_json::{Map, Value};
use uuid::Uuid;

/// What a version of an assistant says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AssistantContent {
    /// The graph it runs.
    pub graph: String,
    /// Its name, for people.
    pub name: String,
    /// One line about it.
    pub description: Option<String>,
    /// `tags`, `recursion_limit` and the like of its runs; `configurable` is the context again.
    pub config: Map<String, Value>,
    /// The context of its runs.
    pub context: Map<String, Value>,
    /// Client metadata.
    pub metadata: Map<String, Value>,
}

impl AssistantContent {
    /// The same with the context as `config.configurable` too, its older name: agents see it whichever they read.
    #[must_use]
    pub fn mirrored(mut self) -> Self {
        self.config.shift_remove("configurable");
        if !self.context.is_empty() {
            self.config.insert(
                "configurable".to_owned(),
                Value::Object(self.context.clone()),
            );
        }
        self
    }
}

/// An assistant as it is now.
#[derive(Debug, Clone, PartialEq)]
pub struct Assistant {
    /// Its id.
    pub id: Uuid,
    /// Who made it.
    pub user_id: Option<String>,
    /// The version that is in force.
    pub version: u32,
    /// What that version says.
    pub content: AssistantContent,
    /// When the assistant was made.
    pub created_at: DateTime<Utc>,
    /// When it last changed.
    pub updated_at: DateTime<Utc>,
}

/// An assistant to be made.
#[derive(Debug, Clone)]
pub struct NewAssistant {
    /// Its id.
    pub id: Uuid,
    /// Whose it shall be.
    pub user_id: Option<String>,
    /// Its first version.
    pub content: AssistantContent,
    /// Now.
    pub at: DateTime<Utc>,
}

/// What a create found.
#[derive(Debug, Clone, PartialEq)]
pub enum CreatedAssistant {
    /// It is new.
    New(Assistant),
    /// The user has it already; it is unchanged.
    Existing(Assistant),
    /// Somebody else has it.
    Taken,
}

/// A new version: what is said replaces, what is not said stays.
#[derive(Debug, Clone, Default)]
pub struct AssistantPatch {
    /// Another graph.
    pub graph: Option<String>,
    /// Another name.
    pub name: Option<String>,
    /// Another description.
    pub description: Option<String>,
    /// Another configuration.
    pub config: Option<Map<String, Value>>,
    /// Another context.
    pub context: Option<Map<String, Value>>,
    /// Merged one level deep.
    pub metadata: Map<String, Value>,
}

impl AssistantPatch {
    /// What the next version says after one that says `content`.
    #[must_use]
    pub fn applied_to(&self, mut content: AssistantContent) -> AssistantContent {
        let patch = self.clone();
        content.graph = patch.graph.unwrap_or(content.graph);
        content.name = patch.name.unwrap_or(content.name);
        content.description = patch.description.or(content.description);
        content.config = patch.config.unwrap_or(content.config);
        content.context = patch.context.unwrap_or(content.context);
        content.metadata.extend(patch.metadata);
        content.mirrored()
    }
}

/// One version of an assistant.
#[derive(Debug, Clone, PartialEq)]
pub struct AssistantVersion {
    /// The assistant.
    pub id: Uuid,
    /// 1 for the first.
    pub version: u32,
    /// What it says.
    pub content: AssistantContent,
    /// When it was made.
    pub created_at: DateTime<Utc>,
}

/// What to sort by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AssistantSort {
    /// The making.
    #[default]
    CreatedAt,
    /// The last change.
    UpdatedAt,
    /// The name, by its bytes.
    Name,
    /// The graph, by its bytes.
    Graph,
    /// The id.
    Id,
}

/// Which assistants to find.
#[derive(Debug, Clone, Default)]
pub struct AssistantSearch {
    /// Only those of this graph.
    pub graph: Option<String>,
    /// Only those whose name contains this, in upper or lower case.
    pub name: Option<String>,
    /// Only those whose metadata contains this; see [`contains`](crate::containment::contains).
    pub metadata: Map<String, Value>,
    /// Not these.
    pub except: Vec<Uuid>,
    /// What to sort by; ties by id, in the same direction.
    pub sort_by: AssistantSort,
    /// Smallest first.
    pub ascending: bool,
    /// At most this many.
    pub limit: usize,
    /// Skip this many.
    pub offset: usize,
}

impl AssistantSearch {
    /// Whether an assistant passes the filters.
    pub fn matches(&self, content: &AssistantContent) -> bool {
        self.graph
            .as_ref()
            .is_none_or(|graph| content.graph == *graph)
            && self.describes(&content.name, &content.metadata)
    }

    /// Whether a name and metadata pass the filters about them.
    pub fn describes(&self, name: &str, metadata: &Map<String, Value>) -> bool {
        self.name
            .as_ref()
            .is_none_or(|wanted| name.to_lowercase().contains(&wanted.to_lowercase()))
            && crate::containment::contains(metadata, &self.metadata)
    }

    /// The wanted order.
    pub fn order(&self, a: &Assistant, b: &Assistant) -> Ordering {
        let by_key = match self.sort_by {
            AssistantSort::CreatedAt => a.created_at.cmp(&b.created_at),
            AssistantSort::UpdatedAt => a.updated_at.cmp(&b.updated_at),
            AssistantSort::Name => a.content.name.cmp(&b.content.name),
            AssistantSort::Graph => a.content.graph.cmp(&b.content.graph),
            AssistantSort::Id => Ordering::Equal,
        };
        let ascending = by_key.then(a.id.cmp(&b.id));
        if self.ascending {
            ascending
        } else {
            ascending.reverse()
        }
    }
}

/// Which versions of an assistant to list.
#[derive(Debug, Clone, Default)]
pub struct VersionQuery {
    /// Only those whose metadata contains this.
    pub metadata: Map<String, Value>,
    /// At most this many.
    pub limit: usize,
    /// Skip this many.
    pub offset: usize,
}

/// Keeps assistants. Another user's assistant is as if it did not exist; every change is a version that stays.
#[async_trait]
pub trait AssistantStore: Send + Sync + std::fmt::Debug {
    /// Makes an assistant, or finds it.
    async fn create(&self, assistant: NewAssistant) -> Result<CreatedAssistant, StoreError>;
    /// One assistant.
    async fn get(&self, id: Uuid, owner: &Owner) -> Result<Option<Assistant>, StoreError>;
    /// Assistants that match.
    async fn search(
        &self,
        search: &AssistantSearch,
        owner: &Owner,
    ) -> Result<Vec<Assistant>, StoreError>;
    /// How many match, limit and offset aside.
    async fn count(&self, search: &AssistantSearch, owner: &Owner) -> Result<u64, StoreError>;
    /// Makes the next version and puts it in force. Its number is one more than that of the newest.
    async fn patch(
        &self,
        id: Uuid,
        patch: AssistantPatch,
        owner: &Owner,
        at: DateTime<Utc>,
    ) -> Result<Option<Assistant>, StoreError>;
    /// Versions, newest first; `None` when there is no such assistant.
    async fn versions(
        &self,
        id: Uuid,
        query: &VersionQuery,
        owner: &Owner,
    ) -> Result<Option<Vec<AssistantVersion>>, StoreError>;
    /// Puts a version in force again; `None` when there is no such assistant or version.
    async fn set_latest(
        &self,
        id: Uuid,
        version: u32,
        owner: &Owner,
        at: DateTime<Utc>,
    ) -> Result<Option<Assistant>, StoreError>;
    /// Removes an assistant with its versions. `false` when there was none.
    async fn delete(&self, id: Uuid, owner: &Owner) -> Result<bool, StoreError>;
}

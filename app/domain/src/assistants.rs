//! Assistants: named, versioned configurations of a graph.

use std::cmp::Ordering;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_core::actor_context::Owner;
use deerflow_core::json_size::merge_within;
use deerflow_core::quota::{Quota, QuotaExceeded, UserQuotas};
use deerflow_runtime::runs::store::StoreError;
use serde_json::{Map, Value};
use uuid::Uuid;

/// Content of one assistant version.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AssistantContent {
    /// Graph that its runs execute.
    pub graph: String,
    /// Display name.
    pub name: String,
    /// One-line description.
    pub description: Option<String>,
    /// `tags`, `recursion_limit` and other settings of its runs; `configurable` repeats the
    /// context.
    pub config: Map<String, Value>,
    /// Context of its runs.
    pub context: Map<String, Value>,
    /// Metadata set by clients.
    pub metadata: Map<String, Value>,
}

impl AssistantContent {
    /// Copies the context to `config.configurable`, its older name, because agents may read either.
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

/// Assistant in its active version.
#[derive(Debug, Clone, PartialEq)]
pub struct Assistant {
    /// Id by which clients name the assistant.
    pub id: Uuid,
    /// User that created it.
    pub user_id: Option<String>,
    /// Active version.
    pub version: u32,
    /// Content of the active version.
    pub content: AssistantContent,
    /// Creation time of the assistant.
    pub created_at: DateTime<Utc>,
    /// Time of the last change.
    pub updated_at: DateTime<Utc>,
}

/// Assistant to create.
#[derive(Debug, Clone)]
pub struct NewAssistant {
    /// Id of the new assistant, unique over all users.
    pub id: Uuid,
    /// Owner.
    pub user_id: Option<String>,
    /// Content of version 1.
    pub content: AssistantContent,
    /// Current time.
    pub at: DateTime<Utc>,
}

/// Result of a create.
#[derive(Debug, Clone, PartialEq)]
pub enum CreatedAssistant {
    /// Created.
    New(Assistant),
    /// The user already owns the id; the stored record is unchanged.
    Existing(Assistant),
    /// The id belongs to another user.
    Taken,
}

/// Changes for a new version; fields that are `None` keep their value.
#[derive(Debug, Clone, Default)]
pub struct AssistantPatch {
    /// New graph.
    pub graph: Option<String>,
    /// New name.
    pub name: Option<String>,
    /// New description.
    pub description: Option<String>,
    /// New configuration.
    pub config: Option<Map<String, Value>>,
    /// New context.
    pub context: Option<Map<String, Value>>,
    /// Merged into the existing metadata, one level deep.
    pub metadata: Map<String, Value>,
    /// Maximum size of the merged metadata, in bytes of JSON. Without it the size is not checked.
    pub max_metadata_bytes: Option<usize>,
}

impl AssistantPatch {
    /// Returns the content of the next version, based on `content`.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`].
    pub fn applied_to(
        &self,
        mut content: AssistantContent,
    ) -> Result<AssistantContent, StoreError> {
        let patch = self.clone();
        content.graph = patch.graph.unwrap_or(content.graph);
        content.name = patch.name.unwrap_or(content.name);
        content.description = patch.description.or(content.description);
        content.config = patch.config.unwrap_or(content.config);
        content.context = patch.context.unwrap_or(content.context);
        let limit = patch.max_metadata_bytes;
        content.metadata = merge_within("metadata", content.metadata, patch.metadata, limit)?;
        Ok(content.mirrored())
    }
}

/// One version of an assistant.
#[derive(Debug, Clone, PartialEq)]
pub struct AssistantVersion {
    /// Id of the assistant.
    pub id: Uuid,
    /// Version number; the first is 1.
    pub version: u32,
    /// Content of the version.
    pub content: AssistantContent,
    /// Creation time.
    pub created_at: DateTime<Utc>,
}

/// Sort key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AssistantSort {
    /// Creation time.
    #[default]
    CreatedAt,
    /// Time of the last change.
    UpdatedAt,
    /// Name, compared by bytes.
    Name,
    /// Graph, compared by bytes.
    Graph,
    /// Id, as text.
    Id,
}

/// Filters, order and page of an assistant search.
#[derive(Debug, Clone, Default)]
pub struct AssistantSearch {
    /// Returns only assistants of this graph.
    pub graph: Option<String>,
    /// Returns only assistants whose name contains this text, ignoring case.
    pub name: Option<String>,
    /// Returns only assistants whose metadata contains this; see
    /// [`contains`](crate::containment::contains).
    pub metadata: Map<String, Value>,
    /// Ids to leave out.
    pub except: Vec<Uuid>,
    /// Sort key; ties are ordered by id, in the same direction.
    pub sort_by: AssistantSort,
    /// Ascending order instead of descending.
    pub ascending: bool,
    /// Maximum number of results.
    pub limit: usize,
    /// Number of results to skip.
    pub offset: usize,
}

impl AssistantSearch {
    /// Reports whether an assistant passes the filters.
    pub fn matches(&self, content: &AssistantContent) -> bool {
        self.graph
            .as_ref()
            .is_none_or(|graph| content.graph == *graph)
            && self.metadata_matches(&content.name, &content.metadata)
    }

    /// Reports whether a name and metadata pass their filters.
    pub fn metadata_matches(&self, name: &str, metadata: &Map<String, Value>) -> bool {
        self.name
            .as_ref()
            .is_none_or(|part| name.to_lowercase().contains(&part.to_lowercase()))
            && crate::containment::contains(metadata, &self.metadata)
    }

    /// Compares two assistants in the requested order.
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

/// Filter and page of a version list.
#[derive(Debug, Clone, Default)]
pub struct VersionQuery {
    /// Returns only versions whose metadata contains this.
    pub metadata: Map<String, Value>,
    /// Maximum number of results.
    pub limit: usize,
    /// Number of results to skip.
    pub offset: usize,
}

/// Checks that an assistant whose newest version has the number `newest` may have another version.
///
/// # Errors
/// [`QuotaExceeded`] at [`MAX_ASSISTANT_VERSIONS`](deerflow_core::quota::MAX_ASSISTANT_VERSIONS).
pub fn check_versions(newest: u64) -> Result<(), QuotaExceeded> {
    UserQuotas::default().check(Quota::AssistantVersions, newest)
}

/// Stores assistants. Assistants of other users are treated as nonexistent. Every change adds a
/// version; versions are never overwritten.
#[async_trait]
pub trait AssistantStore: Send + Sync + std::fmt::Debug {
    /// Creates an assistant, or returns the existing one.
    async fn create(&self, assistant: NewAssistant) -> Result<CreatedAssistant, StoreError>;
    /// Returns one assistant.
    async fn get(&self, id: Uuid, owner: &Owner) -> Result<Option<Assistant>, StoreError>;
    /// Returns those of these assistants that exist, in any order.
    async fn get_many(&self, ids: &[Uuid], owner: &Owner) -> Result<Vec<Assistant>, StoreError>;
    /// Returns the assistants that match.
    async fn search(
        &self,
        search: &AssistantSearch,
        owner: &Owner,
    ) -> Result<Vec<Assistant>, StoreError>;
    /// Counts all matches, ignoring limit and offset.
    async fn count(&self, search: &AssistantSearch, owner: &Owner) -> Result<u64, StoreError>;
    /// Adds a version and activates it. Its number is that of the newest version plus one. Metadata
    /// that would be larger than its limit is refused ([`StoreError::TooLarge`]), and so is a version
    /// beyond [`MAX_ASSISTANT_VERSIONS`](deerflow_core::quota::MAX_ASSISTANT_VERSIONS) ([`StoreError::QuotaExceeded`]).
    async fn patch(
        &self,
        id: Uuid,
        patch: AssistantPatch,
        owner: &Owner,
        at: DateTime<Utc>,
    ) -> Result<Option<Assistant>, StoreError>;
    /// Returns versions, newest first; `None` if the assistant does not exist.
    async fn versions(
        &self,
        id: Uuid,
        query: &VersionQuery,
        owner: &Owner,
    ) -> Result<Option<Vec<AssistantVersion>>, StoreError>;
    /// Activates an existing version; `None` if the assistant or the version does not exist.
    async fn set_latest(
        &self,
        id: Uuid,
        version: u32,
        owner: &Owner,
        at: DateTime<Utc>,
    ) -> Result<Option<Assistant>, StoreError>;
    /// Deletes an assistant with its versions. Returns `false` if it did not exist.
    async fn delete(&self, id: Uuid, owner: &Owner) -> Result<bool, StoreError>;
}

//! Operations on user memories. Every change uses the document's revision for optimistic
//! concurrency.

use std::collections::HashSet;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use super::merge::fact_id;
use super::rules::MemoryRules;
use crate::clock::{Clock, iso_z};
use crate::ids::{IdSource, ThreadId};
use crate::runtime::runs::store::StoreError;
use deerflow_runtime::user_memory::{Fact, FactSource, MemoryDocument};
use deerflow_runtime::user_memory::{MemoryScope, StoredMemory, UserMemoryStore};

/// Maximum number of attempts if concurrent changes cause conflicts.
const MAX_ATTEMPTS: u32 = 8;

/// Errors of changing a memory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// There is no fact with this id.
    #[error("memory fact {0:?} not found")]
    NoFact(String),
    /// Another fact has the same content.
    #[error("the memory already has this fact")]
    Duplicate,
    /// Every attempt conflicted with a concurrent change.
    #[error("the memory is being changed concurrently, try again")]
    Busy,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Change of a fact by the user; absent fields are preserved.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FactChange {
    /// New content.
    pub content: Option<String>,
    /// New category.
    pub category: Option<String>,
    /// New confidence, from 0 to 1.
    pub confidence: Option<f64>,
}

/// User memories of an installation.
#[derive(Debug, Clone)]
pub struct UserMemories {
    store: Arc<dyn UserMemoryStore>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    are_updated_by_commits: bool,
}

impl UserMemories {
    /// Creates the service over a store.
    pub fn new(
        store: Arc<dyn UserMemoryStore>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
    ) -> Self {
        Self {
            store,
            clock,
            ids,
            are_updated_by_commits: false,
        }
    }

    /// Declares that the commits of runs register updates in this store, because both are in one
    /// database ([`RunCommit::memory_update`]). A run then registers its update with its next
    /// commit, which is usually that of its end, instead of a write of its own.
    ///
    /// Requires a run store that passes `memory_update_suite!`: any other ignores the updates, such
    /// as the stores in memory.
    ///
    /// [`RunCommit::memory_update`]: crate::runtime::runs::store::RunCommit::memory_update
    #[must_use]
    pub fn updated_by_commits(self) -> Self {
        Self {
            are_updated_by_commits: true,
            ..self
        }
    }

    pub(crate) fn are_updated_by_commits(&self) -> bool {
        self.are_updated_by_commits
    }

    /// Returns the store.
    pub(super) fn store(&self) -> &dyn UserMemoryStore {
        &*self.store
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    pub(super) fn ids(&self) -> &dyn IdSource {
        &*self.ids
    }

    /// Returns the memory with the number of changes that the user made.
    pub async fn read(&self, scope: &MemoryScope) -> Result<StoredMemory, StoreError> {
        let current = self.store.read(scope).await?;
        Ok(current.unwrap_or_else(|| StoredMemory {
            document: MemoryDocument::default(),
            edits: 0,
        }))
    }

    /// Registers a pending update of a thread, to be processed after the quiet time.
    pub async fn note(
        &self,
        scope: &MemoryScope,
        thread: &ThreadId,
        rules: &MemoryRules,
    ) -> Result<(), StoreError> {
        self.store.note(scope, thread, self.due(rules)).await
    }

    /// Returns the time at which an update that is registered now is due.
    pub(crate) fn due(&self, rules: &MemoryRules) -> DateTime<Utc> {
        let quiet_time = TimeDelta::from_std(rules.debounce).unwrap_or_default();
        self.clock.now() + quiet_time
    }

    /// Makes the pending update of a thread due at once, without the quiet time.
    pub async fn hurry(&self, thread: &ThreadId) -> Result<(), StoreError> {
        self.store.hurry(thread, DateTime::UNIX_EPOCH).await
    }

    /// Adds a fact that the user entered.
    pub async fn add(
        &self,
        scope: &MemoryScope,
        content: &str,
        category: &str,
        confidence: f64,
    ) -> Result<MemoryDocument, MemoryError> {
        let new = Fact {
            id: fact_id(&*self.ids),
            content: content.trim().to_owned(),
            category: category.to_owned(),
            confidence,
            created_at: iso_z(self.clock.now()),
            source: FactSource::manual(),
            source_error: None,
            status: None,
            updated_at: None,
            extra: Default::default(),
        };
        let add = |document: &mut MemoryDocument| {
            if document.contains(&new.content) {
                return Err(MemoryError::Duplicate);
            }
            document.facts.push(new.clone());
            Ok(())
        };
        self.change(scope, true, add).await
    }

    /// Changes a fact at the user's request. The fact is trusted from then on.
    pub async fn correct(
        &self,
        scope: &MemoryScope,
        id: &str,
        change: &FactChange,
    ) -> Result<MemoryDocument, MemoryError> {
        let now = iso_z(self.clock.now());
        let correct = |document: &mut MemoryDocument| {
            let no_fact = || MemoryError::NoFact(id.to_owned());
            let at = document
                .facts
                .iter()
                .position(|fact| fact.id == id)
                .ok_or_else(no_fact)?;
            let mut fact = document.facts.remove(at);
            if let Some(content) = &change.content {
                if document.contains(content) {
                    return Err(MemoryError::Duplicate);
                }
                content.trim().clone_into(&mut fact.content);
            }
            fact.category = change.category.clone().unwrap_or(fact.category);
            fact.confidence = change.confidence.unwrap_or(fact.confidence);
            fact.status = None;
            fact.updated_at = Some(now.clone());
            document.facts.insert(at, fact);
            Ok(())
        };
        self.change(scope, true, correct).await
    }

    /// Removes a fact.
    pub async fn remove(
        &self,
        scope: &MemoryScope,
        id: &str,
    ) -> Result<MemoryDocument, MemoryError> {
        let remove = |document: &mut MemoryDocument| {
            let before = document.facts.len();
            document.facts.retain(|fact| fact.id != id);
            if document.facts.len() == before {
                Err(MemoryError::NoFact(id.to_owned()))
            } else {
                Ok(())
            }
        };
        self.change(scope, true, remove).await
    }

    /// Lists the user's custom agents that have memories or pending updates.
    pub async fn agents(&self, user: &str) -> Result<Vec<String>, StoreError> {
        self.store.agents(user).await
    }

    /// Clears the memory of the scope; messages of pending updates that were sent before are not
    /// extracted.
    pub async fn forget(&self, scope: &MemoryScope) -> Result<MemoryDocument, MemoryError> {
        let now = self.clock.now();
        let forget = |document: &mut MemoryDocument| {
            let empty = MemoryDocument::default();
            *document = MemoryDocument {
                revision: document.revision,
                forgotten_at: Some(now),
                ..empty
            };
            Ok(())
        };
        self.change(scope, true, forget).await
    }

    /// Clears all memories of the user, including those of custom agents. Returns the user's own
    /// document.
    pub async fn forget_user(&self, user: &str) -> Result<MemoryDocument, MemoryError> {
        for agent in self.agents(user).await? {
            self.forget(&MemoryScope {
                user: user.to_owned(),
                agent: Some(agent),
            })
            .await?;
        }
        self.forget(&MemoryScope::of_user(user)).await
    }

    /// Replaces the whole document. Facts without a unique id get a new one.
    pub async fn replace(
        &self,
        scope: &MemoryScope,
        mut replacement: MemoryDocument,
    ) -> Result<MemoryDocument, MemoryError> {
        let mut seen = HashSet::new();
        for fact in &mut replacement.facts {
            if fact.id.is_empty() || !seen.insert(fact.id.clone()) {
                fact.id = fact_id(&*self.ids);
            }
        }
        let replace = |document: &mut MemoryDocument| {
            *document = MemoryDocument {
                revision: document.revision,
                forgotten_at: document.forgotten_at,
                ..replacement.clone()
            };
            Ok(())
        };
        self.change(scope, true, replace).await
    }

    /// Reads, changes and writes the document; retries after concurrent changes.
    pub(super) async fn change(
        &self,
        scope: &MemoryScope,
        edited: bool,
        change: impl Fn(&mut MemoryDocument) -> Result<(), MemoryError> + Send + Sync,
    ) -> Result<MemoryDocument, MemoryError> {
        for _ in 0..MAX_ATTEMPTS {
            let current = self.read(scope).await?.document;
            let mut next = current.clone();
            change(&mut next)?;
            if next == current {
                return Ok(current);
            }
            let now = self.clock.now();
            next.last_updated = iso_z(now);
            if self.store.write(scope, &next, edited, now).await? {
                next.revision += 1;
                return Ok(next);
            }
        }
        Err(MemoryError::Busy)
    }
}

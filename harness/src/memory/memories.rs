//! What can be done with memories: read, correct, note, learn. Every change goes through the document's revision.

use std::collections::HashSet;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta};

use super::document::{Fact, FactSource, MemoryDocument};
use super::merge::fact_id;
use super::rules::MemoryRules;
use super::store::{MemoryScope, MemoryStore, Stored};
use crate::clock::{Clock, iso_z};
use crate::ids::{IdSource, ThreadId};
use crate::runtime::runs::store::StoreError;

/// How often a change is made anew because somebody else was first.
const MOST_TRIES: u32 = 8;

/// Why a memory stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// No fact of this id.
    #[error("memory fact {0:?} not found")]
    NoFact(String),
    /// Another fact says the same.
    #[error("the memory has this fact already")]
    Duplicate,
    /// Too many changes at once.
    #[error("the memory is being changed by others")]
    Busy,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a user makes of a fact; what is absent stays.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FactChange {
    /// The fact.
    pub content: Option<String>,
    /// Its kind.
    pub category: Option<String>,
    /// From 0 to 1.
    pub confidence: Option<f64>,
}

/// The memories of an installation.
#[derive(Debug, Clone)]
pub struct Memories {
    store: Arc<dyn MemoryStore>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
}

impl Memories {
    /// Over a store.
    pub fn new(store: Arc<dyn MemoryStore>, clock: Arc<dyn Clock>, ids: Arc<dyn IdSource>) -> Self {
        Self { store, clock, ids }
    }

    /// The store.
    pub(super) fn store(&self) -> &dyn MemoryStore {
        &*self.store
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    pub(super) fn ids(&self) -> &dyn IdSource {
        &*self.ids
    }

    /// What is remembered, with the number of the user's own changes.
    pub async fn read(&self, scope: &MemoryScope) -> Result<Stored, StoreError> {
        let held = self.store.read(scope).await?;
        Ok(held.unwrap_or_else(|| Stored {
            document: MemoryDocument::default(),
            edits: 0,
        }))
    }

    /// Remembers that a thread has news for when it has been quiet.
    pub async fn note(
        &self,
        scope: &MemoryScope,
        thread: &ThreadId,
        rules: &MemoryRules,
    ) -> Result<(), StoreError> {
        let pause = TimeDelta::from_std(rules.debounce).unwrap_or_default();
        self.store
            .note(scope, thread, self.clock.now() + pause)
            .await
    }

    /// What the thread has to tell is learned next, however long it has been quiet.
    pub async fn hurry(&self, thread: &ThreadId) -> Result<(), StoreError> {
        self.store.hurry(thread, DateTime::UNIX_EPOCH).await
    }

    /// Adds a fact that the user told outright.
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
            if document.says(&new.content) {
                return Err(MemoryError::Duplicate);
            }
            document.facts.push(new.clone());
            Ok(())
        };
        self.change(scope, true, add).await
    }

    /// Corrects a fact. What the user has looked at is trusted from then on.
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
                if document.says(content) {
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

    /// The user's own agents that remember something, or will soon.
    pub async fn agents(&self, user: &str) -> Result<Vec<String>, StoreError> {
        self.store.agents(user).await
    }

    /// Forgets everything of the scope, also what is noted and not learned yet.
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

    /// Forgets everything of the user, also what the user's own agents remember. Gives the user's own document.
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

    /// Puts a whole document in the place of what is remembered. Facts without an id of their own get one.
    pub async fn replace(
        &self,
        scope: &MemoryScope,
        mut with: MemoryDocument,
    ) -> Result<MemoryDocument, MemoryError> {
        let mut seen = HashSet::new();
        for fact in &mut with.facts {
            if fact.id.is_empty() || !seen.insert(fact.id.clone()) {
                fact.id = fact_id(&*self.ids);
            }
        }
        let replace = |document: &mut MemoryDocument| {
            *document = MemoryDocument {
                revision: document.revision,
                forgotten_at: document.forgotten_at,
                ..with.clone()
            };
            Ok(())
        };
        self.change(scope, true, replace).await
    }

    /// Reads, changes and writes, again while somebody else was first.
    pub(super) async fn change(
        &self,
        scope: &MemoryScope,
        edited: bool,
        change: impl Fn(&mut MemoryDocument) -> Result<(), MemoryError> + Send + Sync,
    ) -> Result<MemoryDocument, MemoryError> {
        for _ in 0..MOST_TRIES {
            let held = self.read(scope).await?.document;
            let mut next = held.clone();
            change(&mut next)?;
            if next == held {
                return Ok(held);
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

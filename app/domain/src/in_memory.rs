//! Assistants in memory, for one process and for tests.

use std::collections::BTreeMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_core::actor_context::Owner;
use deerflow_runtime::runs::store::StoreError;
use parking_lot::Mutex;
use uuid::Uuid;

use crate::assistants::{
    Assistant, AssistantPatch, AssistantSearch, AssistantStore, AssistantVersion, CreatedAssistant,
    NewAssistant, VersionQuery, check_versions,
};
use crate::containment::contains;

/// Assistants of one process.
#[derive(Debug, Default)]
pub struct InMemoryAssistantStore(Mutex<BTreeMap<Uuid, StoredAssistant>>);

#[derive(Debug)]
struct StoredAssistant {
    current: Assistant,
    /// In ascending order of version numbers.
    versions: Vec<AssistantVersion>,
}

impl StoredAssistant {
    fn belongs_to(&self, user: Option<&str>) -> bool {
        user.is_none() || self.current.user_id.as_deref() == user
    }

    /// Makes a version the active one.
    fn activate(&mut self, version: &AssistantVersion, at: DateTime<Utc>) -> Assistant {
        self.current.version = version.version;
        self.current.content = version.content.clone();
        self.current.updated_at = at;
        self.current.clone()
    }
}

impl InMemoryAssistantStore {
    /// Runs `act` on an assistant of this owner; returns `None` if there is none.
    fn with_owned<T>(
        &self,
        id: Uuid,
        owner: &Owner,
        act: impl FnOnce(&mut StoredAssistant) -> Option<T>,
    ) -> Result<Option<T>, StoreError> {
        let user = owner.resolve()?;
        let mut stored = self.0.lock();
        let owned = stored
            .get_mut(&id)
            .filter(|stored| stored.belongs_to(user.as_deref()));
        Ok(owned.and_then(act))
    }

    fn matching(
        &self,
        search: &AssistantSearch,
        owner: &Owner,
    ) -> Result<Vec<Assistant>, StoreError> {
        let user = owner.resolve()?;
        let stored = self.0.lock();
        let of_user = stored
            .values()
            .filter(|stored| stored.belongs_to(user.as_deref()))
            .map(|stored| &stored.current);
        let requested = |current: &&Assistant| {
            !search.except.contains(&current.id) && search.matches(&current.content)
        };
        let mut found: Vec<Assistant> = of_user.filter(requested).cloned().collect();
        found.sort_by(|a, b| search.order(a, b));
        Ok(found)
    }
}

#[async_trait]
impl AssistantStore for InMemoryAssistantStore {
    async fn create(&self, new: NewAssistant) -> Result<CreatedAssistant, StoreError> {
        let mut stored = self.0.lock();
        if let Some(existing) = stored.get(&new.id) {
            let is_owner = existing.current.user_id == new.user_id;
            return Ok(if is_owner {
                CreatedAssistant::Existing(existing.current.clone())
            } else {
                CreatedAssistant::Taken
            });
        }
        let first = AssistantVersion {
            id: new.id,
            version: 1,
            content: new.content.clone(),
            created_at: new.at,
        };
        let current = Assistant {
            id: new.id,
            user_id: new.user_id,
            version: 1,
            content: new.content,
            created_at: new.at,
            updated_at: new.at,
        };
        stored.insert(
            new.id,
            StoredAssistant {
                current: current.clone(),
                versions: vec![first],
            },
        );
        Ok(CreatedAssistant::New(current))
    }

    async fn get(&self, id: Uuid, owner: &Owner) -> Result<Option<Assistant>, StoreError> {
        self.with_owned(id, owner, |stored| Some(stored.current.clone()))
    }

    async fn get_many(&self, ids: &[Uuid], owner: &Owner) -> Result<Vec<Assistant>, StoreError> {
        let user = owner.resolve()?;
        let stored = self.0.lock();
        let requested = ids.iter().filter_map(|id| stored.get(id));
        Ok(requested
            .filter(|stored| stored.belongs_to(user.as_deref()))
            .map(|stored| stored.current.clone())
            .collect())
    }

    async fn search(
        &self,
        search: &AssistantSearch,
        owner: &Owner,
    ) -> Result<Vec<Assistant>, StoreError> {
        Ok(self
            .matching(search, owner)?
            .into_iter()
            .skip(search.offset)
            .take(search.limit)
            .collect())
    }

    async fn count(&self, search: &AssistantSearch, owner: &Owner) -> Result<u64, StoreError> {
        Ok(self.matching(search, owner)?.len() as u64)
    }

    async fn patch(
        &self,
        id: Uuid,
        patch: AssistantPatch,
        owner: &Owner,
        at: DateTime<Utc>,
    ) -> Result<Option<Assistant>, StoreError> {
        let patched = self.with_owned(id, owner, |stored| {
            let content = match patch.applied_to(stored.current.content.clone()) {
                Ok(content) => content,
                Err(refused) => return Some(Err(refused)),
            };
            let newest = stored.versions.last().map_or(0, |newest| newest.version);
            if let Err(exceeded) = check_versions(newest.into()) {
                return Some(Err(exceeded.into()));
            }
            let next = AssistantVersion {
                id,
                version: newest + 1,
                content,
                created_at: at,
            };
            let current = stored.activate(&next, at);
            stored.versions.push(next);
            Some(Ok(current))
        })?;
        patched.transpose()
    }

    async fn versions(
        &self,
        id: Uuid,
        query: &VersionQuery,
        owner: &Owner,
    ) -> Result<Option<Vec<AssistantVersion>>, StoreError> {
        self.with_owned(id, owner, |stored| {
            let matching = stored
                .versions
                .iter()
                .rev()
                .filter(|version| contains(&version.content.metadata, &query.metadata));
            let page = matching.skip(query.offset).take(query.limit);
            Some(page.cloned().collect())
        })
    }

    async fn set_latest(
        &self,
        id: Uuid,
        version: u32,
        owner: &Owner,
        at: DateTime<Utc>,
    ) -> Result<Option<Assistant>, StoreError> {
        self.with_owned(id, owner, |stored| {
            let requested = stored
                .versions
                .iter()
                .find(|existing| existing.version == version)
                .cloned()?;
            Some(stored.activate(&requested, at))
        })
    }

    async fn delete(&self, id: Uuid, owner: &Owner) -> Result<bool, StoreError> {
        let user = owner.resolve()?;
        let mut stored = self.0.lock();
        let mine = stored
            .get(&id)
            .is_some_and(|stored| stored.belongs_to(user.as_deref()));
        Ok(mine && stored.remove(&id).is_some())
    }
}

#[cfg(all(test, feature = "testkit"))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::testkit::assistants::AssistantStores;

    async fn fresh() -> AssistantStores {
        AssistantStores {
            assistants: Arc::new(InMemoryAssistantStore::default()),
            keep: Arc::new(()),
        }
    }

    crate::assistant_store_suite!([#[tokio::test]] fresh);
}

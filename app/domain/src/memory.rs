//! Assistants in memory: for one process, and for tests of what stands above the stores.

use std::collections::BTreeMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use harness::runtime::actor_context::Owner;
use harness::runtime::runs::store::StoreError;
use parking_lot::Mutex;
use uuid::Uuid;

use crate::assistants::{
    Assistant, AssistantPatch, AssistantSearch, AssistantStore, AssistantVersion, CreatedAssistant,
    NewAssistant, VersionQuery,
};
use crate::containment::contains;

/// Assistants of one process.
#[derive(Debug, Default)]
pub struct MemoryAssistantStore(Mutex<BTreeMap<Uuid, Kept>>);

#[derive(Debug)]
struct Kept {
    now: Assistant,
    /// In the order of their numbers.
    versions: Vec<AssistantVersion>,
}

impl Kept {
    fn is_of(&self, user: Option<&str>) -> bool {
        user.is_none() || self.now.user_id.as_deref() == user
    }

    /// Puts a version in force.
    fn take(&mut self, version: &AssistantVersion, at: DateTime<Utc>) -> Assistant {
        self.now.version = version.version;
        self.now.content = version.content.clone();
        self.now.updated_at = at;
        self.now.clone()
    }
}

impl MemoryAssistantStore {
    fn matching(
        &self,
        search: &AssistantSearch,
        owner: &Owner,
    ) -> Result<Vec<Assistant>, StoreError> {
        let user = owner.resolve()?;
        let kept = self.0.lock();
        let of_user = kept
            .values()
            .filter(|kept| kept.is_of(user.as_deref()))
            .map(|kept| &kept.now);
        let wanted =
            |now: &&Assistant| !search.except.contains(&now.id) && search.matches(&now.content);
        let mut found: Vec<Assistant> = of_user.filter(wanted).cloned().collect();
        found.sort_by(|a, b| search.order(a, b));
        Ok(found)
    }
}

#[async_trait]
impl AssistantStore for MemoryAssistantStore {
    async fn create(&self, new: NewAssistant) -> Result<CreatedAssistant, StoreError> {
        let mut kept = self.0.lock();
        if let Some(held) = kept.get(&new.id) {
            let mine = held.now.user_id == new.user_id;
            return Ok(if mine {
                CreatedAssistant::Existing(held.now.clone())
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
        let now = Assistant {
            id: new.id,
            user_id: new.user_id,
            version: 1,
            content: new.content,
            created_at: new.at,
            updated_at: new.at,
        };
        kept.insert(
            new.id,
            Kept {
                now: now.clone(),
                versions: vec![first],
            },
        );
        Ok(CreatedAssistant::New(now))
    }

    async fn get(&self, id: Uuid, owner: &Owner) -> Result<Option<Assistant>, StoreError> {
        let user = owner.resolve()?;
        Ok(self
            .0
            .lock()
            .get(&id)
            .filter(|kept| kept.is_of(user.as_deref()))
            .map(|kept| kept.now.clone()))
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
        let user = owner.resolve()?;
        let mut kept = self.0.lock();
        let Some(kept) = kept.get_mut(&id).filter(|kept| kept.is_of(user.as_deref())) else {
            return Ok(None);
        };
        let number = kept.versions.last().map_or(1, |newest| newest.version + 1);
        let next = AssistantVersion {
            id,
            version: number,
            content: patch.applied_to(kept.now.content.clone()),
            created_at: at,
        };
        let now = kept.take(&next, at);
        kept.versions.push(next);
        Ok(Some(now))
    }

    async fn versions(
        &self,
        id: Uuid,
        query: &VersionQuery,
        owner: &Owner,
    ) -> Result<Option<Vec<AssistantVersion>>, StoreError> {
        let user = owner.resolve()?;
        let kept = self.0.lock();
        let Some(kept) = kept.get(&id).filter(|kept| kept.is_of(user.as_deref())) else {
            return Ok(None);
        };
        let matching = kept
            .versions
            .iter()
            .rev()
            .filter(|version| contains(&version.content.metadata, &query.metadata));
        Ok(Some(
            matching
                .skip(query.offset)
                .take(query.limit)
                .cloned()
                .collect(),
        ))
    }

    async fn set_latest(
        &self,
        id: Uuid,
        version: u32,
        owner: &Owner,
        at: DateTime<Utc>,
    ) -> Result<Option<Assistant>, StoreError> {
        let user = owner.resolve()?;
        let mut kept = self.0.lock();
        let Some(kept) = kept.get_mut(&id).filter(|kept| kept.is_of(user.as_deref())) else {
            return Ok(None);
        };
        let wanted = kept
            .versions
            .iter()
            .find(|held| held.version == version)
            .cloned();
        Ok(wanted.map(|wanted| kept.take(&wanted, at)))
    }

    async fn delete(&self, id: Uuid, owner: &Owner) -> Result<bool, StoreError> {
        let user = owner.resolve()?;
        let mut kept = self.0.lock();
        let mine = kept
            .get(&id)
            .is_some_and(|kept| kept.is_of(user.as_deref()));
        Ok(mine && kept.remove(&id).is_some())
    }
}

#[cfg(all(test, feature = "testkit"))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::testkit::assistants::AssistantStores;

    async fn fresh() -> AssistantStores {
        AssistantStores {
            assistants: Arc::new(MemoryAssistantStore::default()),
            keep: Arc::new(()),
        }
    }

    crate::assistant_store_suite!([#[tokio::test]] fresh);
}

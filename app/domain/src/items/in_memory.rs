//! Items in memory, for tests and embedders without persistence.

use std::collections::BTreeMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_runtime::runs::store::StoreError;
use parking_lot::Mutex;

use super::{
    Hit, Item, ItemSearch, ItemStore, Namespace, NamespaceQuery, NewItem, ReadOptions, TopK, cosine,
};

/// User, namespace as text, and key.
type ItemKey = (String, String, String);

/// Items in memory.
#[derive(Debug, Default)]
pub struct InMemoryItemStore(Mutex<BTreeMap<ItemKey, StoredItem>>);

#[derive(Debug)]
struct StoredItem {
    new: NewItem,
    created_at: DateTime<Utc>,
    expires_at: Option<DateTime<Utc>>,
}

impl StoredItem {
    fn is_alive(&self, at: DateTime<Utc>) -> bool {
        self.expires_at.is_none_or(|end| end > at)
    }

    fn refresh(&mut self, read_options: ReadOptions) {
        if read_options.refresh
            && let Some(ttl) = self.new.ttl
        {
            self.expires_at = Some(read_options.at + ttl);
        }
    }

    fn item(&self) -> Item {
        let NewItem {
            namespace,
            key,
            value,
            at,
            ..
        } = self.new.clone();
        Item {
            namespace,
            key,
            value,
            created_at: self.created_at,
            updated_at: at,
        }
    }
}

fn item_key(user: &str, namespace: &Namespace, key: &str) -> ItemKey {
    (user.to_owned(), namespace.to_text(), key.to_owned())
}

#[async_trait]
impl ItemStore for InMemoryItemStore {
    async fn put(&self, new: NewItem) -> Result<(), StoreError> {
        let mut stored = self.0.lock();
        let item_key = item_key(&new.user_id, &new.namespace, &new.key);
        let before = stored
            .get(&item_key)
            .filter(|stored| stored.is_alive(new.at))
            .map(|stored| stored.created_at);
        let (created_at, expires_at) = (before.unwrap_or(new.at), new.ttl.map(|ttl| new.at + ttl));
        stored.insert(
            item_key,
            StoredItem {
                new,
                created_at,
                expires_at,
            },
        );
        Ok(())
    }

    async fn get(
        &self,
        user: &str,
        namespace: &Namespace,
        key: &str,
        read_options: ReadOptions,
    ) -> Result<Option<Item>, StoreError> {
        let mut stored = self.0.lock();
        let found = stored
            .get_mut(&item_key(user, namespace, key))
            .filter(|stored| stored.is_alive(read_options.at));
        Ok(found.map(|stored| {
            stored.refresh(read_options);
            stored.item()
        }))
    }

    async fn delete(&self, user: &str, namespace: &Namespace, key: &str) -> Result<(), StoreError> {
        self.0.lock().remove(&item_key(user, namespace, key));
        Ok(())
    }

    async fn search(&self, user: &str, search: &ItemSearch) -> Result<Vec<Hit>, StoreError> {
        let mut stored = self.0.lock();
        let mut best = TopK::new(search.offset.saturating_add(search.limit));
        for (item_key, stored) in &*stored {
            let is_candidate = item_key.0 == user
                && stored.is_alive(search.read_options.at)
                && stored.new.namespace.is_within(&search.prefix);
            if !is_candidate || !search.filter.matches(&stored.new.value) {
                continue;
            }
            let rank = match &search.nearest {
                None => Some(stored.new.at.timestamp_micros() as f64),
                Some(nearest) => stored
                    .new
                    .vectors
                    .iter()
                    .filter_map(|vector| cosine(vector, nearest))
                    .max_by(f64::total_cmp),
            };
            if let Some(rank) = rank {
                best.offer(rank, item_key.clone(), item_key.clone());
            }
        }
        let page = best
            .into_page(search.offset)
            .into_iter()
            .filter_map(|(rank, item_key)| {
                let stored = stored.get_mut(&item_key)?;
                stored.refresh(search.read_options);
                Some(Hit {
                    item: stored.item(),
                    score: search.nearest.is_some().then_some(rank),
                })
            });
        Ok(page.collect())
    }

    async fn namespaces(
        &self,
        user: &str,
        query: &NamespaceQuery,
        at: DateTime<Utc>,
    ) -> Result<Vec<Namespace>, StoreError> {
        let stored = self.0.lock();
        let matching = stored
            .iter()
            .filter(|(item_key, stored)| item_key.0 == user && stored.is_alive(at));
        Ok(query.apply(matching.map(|(_, stored)| stored.new.namespace.clone())))
    }

    async fn sweep(&self, at: DateTime<Utc>) -> Result<u64, StoreError> {
        let mut stored = self.0.lock();
        let before = stored.len();
        stored.retain(|_, stored| stored.is_alive(at));
        Ok((before - stored.len()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::InMemoryItemStore;
    use crate::testkit::items::ItemStores;

    async fn memory() -> ItemStores {
        ItemStores {
            items: Arc::new(InMemoryItemStore::default()),
            keep: Arc::new(()),
        }
    }

    crate::item_store_suite!([#[tokio::test]] memory);
}

//! Items in memory: for tests, and for embedders that keep nothing.

use std::collections::BTreeMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use harness::runtime::runs::store::StoreError;
use parking_lot::Mutex;

use super::{
    Best, Hit, Item, ItemSearch, ItemStore, Namespace, NamespaceQuery, NewItem, Reading, cosine,
};

/// User, namespace as text, key.
type Place = (String, String, String);

/// Items that go with the process.
#[derive(Debug, Default)]
pub struct MemoryItemStore(Mutex<BTreeMap<Place, Kept>>);

#[derive(Debug)]
struct Kept {
    new: NewItem,
    created_at: DateTime<Utc>,
    ends_at: Option<DateTime<Utc>>,
}

impl Kept {
    fn is_there(&self, at: DateTime<Utc>) -> bool {
        self.ends_at.is_none_or(|end| end > at)
    }

    fn refresh(&mut self, reading: Reading) {
        if reading.refresh
            && let Some(ttl) = self.new.ttl
        {
            self.ends_at = Some(reading.at + ttl);
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

fn place(user: &str, namespace: &Namespace, key: &str) -> Place {
    (user.to_owned(), namespace.to_text(), key.to_owned())
}

#[async_trait]
impl ItemStore for MemoryItemStore {
    async fn put(&self, new: NewItem) -> Result<(), StoreError> {
        let mut kept = self.0.lock();
        let place = place(&new.user_id, &new.namespace, &new.key);
        let before = kept
            .get(&place)
            .filter(|kept| kept.is_there(new.at))
            .map(|kept| kept.created_at);
        let (created_at, ends_at) = (before.unwrap_or(new.at), new.ttl.map(|ttl| new.at + ttl));
        kept.insert(
            place,
            Kept {
                new,
                created_at,
                ends_at,
            },
        );
        Ok(())
    }

    async fn get(
        &self,
        user: &str,
        namespace: &Namespace,
        key: &str,
        reading: Reading,
    ) -> Result<Option<Item>, StoreError> {
        let mut kept = self.0.lock();
        let found = kept
            .get_mut(&place(user, namespace, key))
            .filter(|kept| kept.is_there(reading.at));
        Ok(found.map(|kept| {
            kept.refresh(reading);
            kept.item()
        }))
    }

    async fn delete(&self, user: &str, namespace: &Namespace, key: &str) -> Result<(), StoreError> {
        self.0.lock().remove(&place(user, namespace, key));
        Ok(())
    }

    async fn search(&self, user: &str, search: &ItemSearch) -> Result<Vec<Hit>, StoreError> {
        let mut kept = self.0.lock();
        let mut best = Best::new(search.offset.saturating_add(search.limit));
        for (place, kept) in &*kept {
            let wanted = place.0 == user
                && kept.is_there(search.reading.at)
                && kept.new.namespace.is_within(&search.prefix);
            if !wanted || !search.filter.matches(&kept.new.value) {
                continue;
            }
            let rank = match &search.nearest {
                None => Some(kept.new.at.timestamp_micros() as f64),
                Some(nearest) => kept
                    .new
                    .vectors
                    .iter()
                    .filter_map(|vector| cosine(vector, nearest))
                    .max_by(f64::total_cmp),
            };
            if let Some(rank) = rank {
                best.show(rank, place.clone(), place.clone());
            }
        }
        let page = best
            .into_page(search.offset)
            .into_iter()
            .filter_map(|(rank, place)| {
                let kept = kept.get_mut(&place)?;
                kept.refresh(search.reading);
                Some(Hit {
                    item: kept.item(),
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
        let kept = self.0.lock();
        let there = kept
            .iter()
            .filter(|(place, kept)| place.0 == user && kept.is_there(at));
        Ok(query.answer(there.map(|(_, kept)| kept.new.namespace.clone())))
    }

    async fn sweep(&self, at: DateTime<Utc>) -> Result<u64, StoreError> {
        let mut kept = self.0.lock();
        let before = kept.len();
        kept.retain(|_, kept| kept.is_there(at));
        Ok((before - kept.len()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::MemoryItemStore;
    use crate::testkit::items::ItemStores;

    async fn memory() -> ItemStores {
        ItemStores {
            items: Arc::new(MemoryItemStore::default()),
            keep: Arc::new(()),
        }
    }

    crate::item_store_suite!([#[tokio::test]] memory);
}

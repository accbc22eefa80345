//! Flows in memory, for one process and for tests. Threads pin nothing here.

use std::collections::BTreeMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_runtime::runs::store::StoreError;
use parking_lot::Mutex;

use super::record::{FlowContent, FlowRecord, FlowVersionRecord, StoredFlow};
use super::store::{DeletedFlow, Expected, FlowPage, FlowQuota, FlowStore, FlowWrite, SaveError};

/// Flows of one process.
#[derive(Debug, Default)]
pub struct InMemoryFlowStore(Mutex<Stored>);

#[derive(Debug, Clone, Default)]
struct Stored {
    /// By user and slug.
    flows: BTreeMap<(String, String), Flow>,
    /// By owner and hash.
    contents: BTreeMap<(String, String), Content>,
}

#[derive(Debug, Clone)]
struct Flow {
    created_at: DateTime<Utc>,
    /// In ascending order of their numbers; never empty.
    versions: Vec<FlowVersionRecord>,
}

#[derive(Debug, Clone)]
struct Content {
    content: FlowContent,
    /// Time since which no version has it.
    unused_since: Option<DateTime<Utc>>,
}

impl Flow {
    fn current(&self) -> &FlowVersionRecord {
        &self.versions[self.versions.len() - 1]
    }

    fn record(&self, slug: &str) -> FlowRecord {
        let current = self.current().clone();
        FlowRecord {
            slug: slug.to_owned(),
            version: current.version,
            content_hash: current.content_hash,
            summary: current.summary,
            created_at: self.created_at,
            updated_at: current.created_at,
        }
    }
}

impl Stored {
    fn flow(&self, user: &str, slug: &str) -> Option<&Flow> {
        self.flows.get(&(user.to_owned(), slug.to_owned()))
    }

    fn flows_of<'a>(&'a self, user: &'a str) -> impl Iterator<Item = (&'a str, &'a Flow)> {
        self.flows
            .iter()
            .filter(move |((owner, _), _)| owner == user)
            .map(|((_, slug), flow)| (slug.as_str(), flow))
    }

    fn save(
        &mut self,
        user: &str,
        write: FlowWrite,
        quota: FlowQuota,
        at: DateTime<Utc>,
    ) -> Result<FlowRecord, SaveError> {
        let slug = write.slug.clone();
        let hash = write.content.hash();
        let count = self.flows_of(user).count();
        let current = self.flow(user, &slug).map(|flow| flow.current().clone());
        match (&write.expected, &current) {
            (Expected::Absent, Some(_)) => return Err(SaveError::Taken(slug)),
            (Expected::Present | Expected::Hash(_), None) => return Err(SaveError::NotFound(slug)),
            (Expected::Hash(expected), Some(current)) if *expected != current.content_hash => {
                return Err(SaveError::Changed(slug));
            }
            (Expected::Any | Expected::Absent, None) if count >= quota.flows => {
                return Err(SaveError::TooMany(quota.flows));
            }
            _ => {}
        }
        let flow = self
            .flows
            .entry((user.to_owned(), slug.clone()))
            .or_insert_with(|| Flow {
                created_at: at,
                versions: Vec::new(),
            });
        if current
            .as_ref()
            .is_some_and(|current| current.content_hash == hash)
        {
            return Ok(flow.record(&slug));
        }
        flow.versions.push(FlowVersionRecord {
            version: current.map_or(1, |current| current.version + 1),
            content_hash: hash.clone(),
            summary: write.summary,
            created_at: at,
        });
        let surplus = flow.versions.len().saturating_sub(quota.versions.max(1));
        flow.versions.drain(..surplus);
        let record = flow.record(&slug);
        let content = Content {
            content: write.content,
            unused_since: None,
        };
        self.contents.insert((user.to_owned(), hash), content);
        self.mark_unused(user, at);
        Ok(record)
    }

    /// Marks contents of the user that no version has any more.
    fn mark_unused(&mut self, user: &str, at: DateTime<Utc>) {
        let used: Vec<String> = self
            .flows_of(user)
            .flat_map(|(_, flow)| &flow.versions)
            .map(|version| version.content_hash.clone())
            .collect();
        for ((owner, hash), content) in &mut self.contents {
            if owner == user && content.unused_since.is_none() && !used.contains(hash) {
                content.unused_since = Some(at);
            }
        }
    }
}

#[async_trait]
impl FlowStore for InMemoryFlowStore {
    async fn save(
        &self,
        user: &str,
        writes: Vec<FlowWrite>,
        quota: FlowQuota,
        at: DateTime<Utc>,
    ) -> Result<Vec<FlowRecord>, SaveError> {
        let mut stored = self.0.lock();
        let mut next = stored.clone();
        let saved: Result<Vec<FlowRecord>, SaveError> = writes
            .into_iter()
            .map(|write| next.save(user, write, quota, at))
            .collect();
        let saved = saved?;
        *stored = next;
        Ok(saved)
    }

    async fn get(
        &self,
        user: &str,
        slug: &str,
        version: Option<u32>,
    ) -> Result<Option<StoredFlow>, StoreError> {
        let stored = self.0.lock();
        let found = stored.flow(user, slug).and_then(|flow| {
            let mut versions = flow.versions.iter().rev();
            let version = versions
                .find(|stored| version.is_none_or(|number| stored.version == number))?
                .clone();
            let key = (user.to_owned(), version.content_hash.clone());
            let content = stored.contents.get(&key)?.content.clone();
            Some(StoredFlow {
                created_at: flow.created_at,
                version,
                content,
            })
        });
        Ok(found)
    }

    async fn find(&self, user: &str, slug: &str) -> Result<Option<FlowRecord>, StoreError> {
        let stored = self.0.lock();
        Ok(stored.flow(user, slug).map(|flow| flow.record(slug)))
    }

    async fn list(&self, user: &str, page: FlowPage) -> Result<Vec<FlowRecord>, StoreError> {
        let stored = self.0.lock();
        let all = stored.flows_of(user).map(|(slug, flow)| flow.record(slug));
        Ok(all.skip(page.offset).take(page.limit).collect())
    }

    async fn count(&self, user: &str) -> Result<u64, StoreError> {
        Ok(self.0.lock().flows_of(user).count() as u64)
    }

    async fn versions(
        &self,
        user: &str,
        slug: &str,
    ) -> Result<Option<Vec<FlowVersionRecord>>, StoreError> {
        let stored = self.0.lock();
        let flow = stored.flow(user, slug);
        Ok(flow.map(|flow| flow.versions.iter().rev().cloned().collect()))
    }

    async fn delete(
        &self,
        user: &str,
        slug: &str,
        expected: Option<&str>,
        at: DateTime<Utc>,
    ) -> Result<DeletedFlow, StoreError> {
        let mut stored = self.0.lock();
        let Some(flow) = stored.flow(user, slug) else {
            return Ok(DeletedFlow::NotFound);
        };
        if expected.is_some_and(|expected| expected != flow.current().content_hash) {
            return Ok(DeletedFlow::Changed);
        }
        stored.flows.remove(&(user.to_owned(), slug.to_owned()));
        stored.mark_unused(user, at);
        Ok(DeletedFlow::Removed)
    }

    async fn content(&self, owner: &str, hash: &str) -> Result<Option<FlowContent>, StoreError> {
        let stored = self.0.lock();
        let content = stored.contents.get(&(owner.to_owned(), hash.to_owned()));
        Ok(content.map(|stored| stored.content.clone()))
    }

    async fn store_content(
        &self,
        owner: &str,
        content: FlowContent,
        at: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let mut stored = self.0.lock();
        let key = (owner.to_owned(), content.hash());
        let known = stored.contents.entry(key).or_insert(Content {
            content,
            unused_since: Some(at),
        });
        known.unused_since = known.unused_since.map(|since| since.max(at));
        Ok(())
    }

    async fn sweep(&self, before: DateTime<Utc>, limit: usize) -> Result<usize, StoreError> {
        let mut stored = self.0.lock();
        let expired: Vec<(String, String)> = stored
            .contents
            .iter()
            .filter(|(_, content)| content.unused_since.is_some_and(|since| since <= before))
            .map(|(key, _)| key.clone())
            .take(limit)
            .collect();
        for key in &expired {
            stored.contents.remove(key);
        }
        Ok(expired.len())
    }
}

#[cfg(all(test, feature = "testkit"))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::testkit::flows::FlowStores;

    async fn memory() -> FlowStores {
        FlowStores {
            flows: Arc::new(InMemoryFlowStore::default()),
            threads: None,
            keep: Arc::new(()),
        }
    }

    crate::flow_store_suite!([#[tokio::test]] memory);
}

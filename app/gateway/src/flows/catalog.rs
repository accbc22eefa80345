//! Looks up flows: a user's own, the system's, and contents that runs have pinned.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use deerflow_domain::flows::{
    FlowContent, FlowPage, FlowRecord, FlowStore, FlowVersionRecord, SYSTEM_OWNER,
};
use deerflow_flow::compiled::CompiledFlow;
use deerflow_flow::finding::Validation;
use harness::clock::Clock;
use harness::runtime::agent::AssistantPin;
use harness::runtime::compute::heavy_poll;
use harness::runtime::runs::store::StoreError;
use parking_lot::Mutex;

use super::check::FlowRules;
use super::compiled::CompiledFlows;
use super::system::{SystemFlows, SystemSnapshot};
use super::version::{FlowListing, FlowOwner, FlowVersion};

/// Period after which the content of a system flow is stored again: far below the period for which
/// an unused content stays.
const RENEWAL_PERIOD: TimeDelta = TimeDelta::hours(1);

/// Reason why a run cannot have a flow.
#[derive(Debug, thiserror::Error)]
pub enum Unpinned {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The flow is not valid.
    #[error("the flow is not valid")]
    Invalid(Box<Validation>),
}

impl From<Validation> for Unpinned {
    fn from(validation: Validation) -> Self {
        Self::Invalid(Box::new(validation))
    }
}

/// Flows of all users and of the system.
#[derive(Debug)]
pub struct FlowCatalog {
    store: Arc<dyn FlowStore>,
    system: Arc<dyn SystemFlows>,
    rules: Arc<FlowRules>,
    clock: Arc<dyn Clock>,
    compiled: CompiledFlows,
    /// Times at which contents of system flows were last stored, by hash.
    stored: Mutex<HashMap<String, DateTime<Utc>>>,
}

impl FlowCatalog {
    /// Creates a catalog.
    pub fn new(
        store: Arc<dyn FlowStore>,
        system: Arc<dyn SystemFlows>,
        rules: Arc<FlowRules>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            store,
            system,
            rules,
            clock,
            compiled: CompiledFlows::default(),
            stored: Mutex::default(),
        }
    }

    /// Flows of users.
    pub fn store(&self) -> &dyn FlowStore {
        &*self.store
    }

    /// Rules by which flows are validated.
    pub fn rules(&self) -> &Arc<FlowRules> {
        &self.rules
    }

    /// Current state of the system flows.
    pub fn system(&self) -> Arc<SystemSnapshot> {
        self.system.current()
    }

    /// Scans the system flows now.
    pub async fn reload_system(&self) -> Arc<SystemSnapshot> {
        self.system.reload().await
    }

    /// Returns a flow of a user in its current version: the user's own, else the system's.
    pub async fn find(&self, user: &str, slug: &str) -> Result<Option<FlowVersion>, StoreError> {
        if let Some(stored) = self.store.get(user, slug, None).await? {
            return Ok(Some(FlowVersion::of_user(slug, stored)));
        }
        Ok(self.system_flow(slug))
    }

    fn system_flow(&self, slug: &str) -> Option<FlowVersion> {
        let system = self.system.current();
        system.flows.get(slug).map(|flow| flow.version(slug))
    }

    /// Returns the owner and the record of a flow's current version, without its content.
    pub async fn record(
        &self,
        user: &str,
        slug: &str,
    ) -> Result<Option<(FlowOwner, FlowRecord)>, StoreError> {
        if let Some(record) = self.store.find(user, slug).await? {
            return Ok(Some((FlowOwner::User, record)));
        }
        let system = self.system.current();
        let listing = system.flows.get(slug).map(|flow| flow.listing(slug));
        Ok(listing.map(|listing| (listing.owner, listing.record)))
    }

    /// Returns what a new run of a flow pins: its current version, which is valid. Reads the record
    /// of the flow only, if its content is compiled.
    ///
    /// # Errors
    /// [`Unpinned`], if the flow cannot be read or is not valid.
    pub async fn pin(&self, user: &str, slug: &str) -> Result<Option<AssistantPin>, Unpinned> {
        let record = self.store.find(user, slug).await?;
        let flow = match record {
            Some(record) if self.compiled.get(&record.content_hash).is_some() => {
                return Ok(Some(AssistantPin {
                    version: record.version.into(),
                    content_hash: record.content_hash,
                }));
            }
            Some(_) => self.find(user, slug).await?,
            None => self.system_flow(slug),
        };
        let Some(flow) = flow else { return Ok(None) };
        self.compiled(&flow).await?;
        self.retain(&flow).await?;
        Ok(Some(flow.pin()))
    }

    /// Returns the flow that a run of a user has pinned, compiled, also after it was changed or
    /// deleted. `None` if its content is no longer stored. Reads nothing if it is compiled.
    ///
    /// # Errors
    /// [`Unpinned`], if the content cannot be read or is no longer valid.
    pub async fn compiled_pin(
        &self,
        user: &str,
        slug: &str,
        pin: &AssistantPin,
    ) -> Result<Option<Arc<CompiledFlow>>, Unpinned> {
        if let Some(compiled) = self.compiled.get(&pin.content_hash) {
            return Ok(Some(compiled));
        }
        match self.pinned(user, slug, pin).await? {
            Some(flow) => Ok(Some(self.compiled(&flow).await?)),
            None => Ok(None),
        }
    }

    /// Returns the content that a run of a user has pinned, also after its flow was changed or
    /// deleted. `None` if it is no longer stored.
    pub async fn pinned(
        &self,
        user: &str,
        slug: &str,
        pin: &AssistantPin,
    ) -> Result<Option<FlowVersion>, StoreError> {
        let current = self.find(user, slug).await?;
        if let Some(current) = current.filter(|flow| flow.content_hash == pin.content_hash) {
            return Ok(Some(current));
        }
        let owners = [(user, FlowOwner::User), (SYSTEM_OWNER, FlowOwner::System)];
        for (id, owner) in owners {
            if let Some(content) = self.store.content(id, &pin.content_hash).await? {
                return Ok(Some(FlowVersion {
                    slug: slug.to_owned(),
                    owner,
                    version: u32::try_from(pin.version).unwrap_or(u32::MAX),
                    content_hash: pin.content_hash.clone(),
                    content: Arc::new(content),
                    created_at: None,
                    updated_at: None,
                }));
            }
        }
        Ok(None)
    }

    /// Stores the content of a system flow, so that a run can pin it. Call it before a run of the
    /// flow is accepted. Costs nothing within an hour after the last call.
    pub async fn retain(&self, flow: &FlowVersion) -> Result<(), StoreError> {
        if flow.owner == FlowOwner::User {
            return Ok(());
        }
        let now = self.clock.now();
        let is_recent = |at: &DateTime<Utc>| now.signed_duration_since(*at) < RENEWAL_PERIOD;
        if self
            .stored
            .lock()
            .get(&flow.content_hash)
            .is_some_and(is_recent)
        {
            return Ok(());
        }
        let content = FlowContent::clone(&flow.content);
        self.store.store_content(SYSTEM_OWNER, content, now).await?;
        let mut stored = self.stored.lock();
        stored.retain(|_, at| is_recent(at));
        stored.insert(flow.content_hash.clone(), now);
        Ok(())
    }

    /// Returns the flow in the form that runs need. A flow is compiled once, by its content.
    ///
    /// # Errors
    /// The findings, if the flow is not valid.
    pub async fn compiled(&self, flow: &FlowVersion) -> Result<Arc<CompiledFlow>, Validation> {
        if let Some(compiled) = self.compiled.get(&flow.content_hash) {
            return Ok(compiled);
        }
        heavy_poll(FlowRules::size(&flow.content)).await;
        let compiled = self.rules.compile(&flow.content, &flow.content_hash)?;
        let compiled = Arc::new(compiled);
        self.compiled.insert(&flow.content_hash, compiled.clone());
        Ok(compiled)
    }

    /// Returns the flows of a user and those of the system, in the order of their slugs.
    pub async fn list(&self, user: &str) -> Result<Vec<FlowListing>, StoreError> {
        let all = FlowPage {
            limit: i32::MAX as usize,
            offset: 0,
        };
        let own = self.store.list(user, all).await?;
        let system = self.system.current();
        let mut flows: Vec<FlowListing> = system
            .flows
            .iter()
            .filter(|(slug, _)| own.iter().all(|own| own.slug != **slug))
            .map(|(slug, flow)| flow.listing(slug))
            .collect();
        flows.extend(own.into_iter().map(|record| FlowListing {
            owner: FlowOwner::User,
            record,
            errors: Vec::new(),
        }));
        flows.sort_by(|a, b| a.record.slug.cmp(&b.record.slug));
        Ok(flows)
    }

    /// Returns a version of a flow; the current one without a number. A system flow has its current
    /// version only.
    pub async fn version(
        &self,
        user: &str,
        slug: &str,
        number: Option<u32>,
    ) -> Result<Option<FlowVersion>, StoreError> {
        let Some(number) = number else {
            return self.find(user, slug).await;
        };
        if let Some(stored) = self.store.get(user, slug, Some(number)).await? {
            return Ok(Some(FlowVersion::of_user(slug, stored)));
        }
        let current = self.find(user, slug).await?;
        Ok(current.filter(|flow| flow.owner == FlowOwner::System && flow.version == number))
    }

    /// Returns the versions of a flow, newest first.
    pub async fn versions(
        &self,
        user: &str,
        slug: &str,
    ) -> Result<Option<Vec<FlowVersionRecord>>, StoreError> {
        if let Some(versions) = self.store.versions(user, slug).await? {
            return Ok(Some(versions));
        }
        let system = self.system.current();
        Ok(system.flows.get(slug).map(|flow| {
            vec![FlowVersionRecord {
                version: flow.version,
                content_hash: flow.content_hash.clone(),
                summary: flow.summary.clone(),
                created_at: flow.updated_at,
            }]
        }))
    }
}

//! The gateway's threads for in-process clients, in the same form as its routes return them.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_domain::threads::{Created, NewThread, ThreadRecord, ThreadSearch};
use harness::ids::ThreadId;
use harness::runtime::actor_context::{ActorContext, Owner, scope};
use harness::runtime::runs::ThreadStatus;
use harness::runtime::runs::store::StoreError;
use harness::runtime::threads::{ThreadError, ThreadIndex, ThreadView};
use serde_json::Map;

use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::queries::threads::thread_facts;
use crate::responses::{ThreadFacts, thread_view};
use crate::state::GatewayState;

/// Threads of a gateway, in DeerFlow's dialect.
#[derive(Debug, Clone)]
pub struct GatewayThreadIndex(pub Arc<GatewayState>);

impl GatewayThreadIndex {
    async fn row(&self, user: &str, thread: &ThreadId) -> Result<Option<ThreadRecord>, StoreError> {
        self.0
            .thread_services
            .threads
            .get(thread, &Owner::User(user.to_owned()))
            .await
    }
}

#[async_trait]
impl ThreadIndex for GatewayThreadIndex {
    async fn list(&self, user: &str, limit: usize) -> Result<Vec<ThreadView>, ThreadError> {
        let search = ThreadSearch {
            limit,
            pinned_first: true,
            ..ThreadSearch::default()
        };
        let rows = self
            .0
            .thread_services
            .threads
            .search(&search, &Owner::User(user.to_owned()))
            .await?;
        Ok(rows
            .iter()
            .map(|row| thread_view(row, ThreadFacts::title_of(row)))
            .collect())
    }

    async fn get(&self, user: &str, thread: &ThreadId) -> Result<Option<ThreadView>, ThreadError> {
        let Some(row) = self.row(user, thread).await? else {
            return Ok(None);
        };
        // Reads of runs and events are scoped to the current actor.
        let facts = scope(
            ActorContext::user(user),
            thread_facts(&self.0, &row, Dialect::DeerFlow),
        )
        .await;
        let facts = facts.map_err(|error| match error {
            ApiError::Unavailable(why) => StoreError::Unavailable(why).into(),
            other => ThreadError::Unshowable(other.to_string()),
        })?;
        Ok(Some(thread_view(&row, facts)))
    }

    async fn status(
        &self,
        user: &str,
        thread: &ThreadId,
    ) -> Result<Option<ThreadStatus>, ThreadError> {
        Ok(self.row(user, thread).await?.map(|row| row.status))
    }

    async fn find_or_make(
        &self,
        user: &str,
        thread: &ThreadId,
        at: DateTime<Utc>,
    ) -> Result<ThreadStatus, ThreadError> {
        let new = NewThread {
            thread_id: thread.clone(),
            user_id: Some(user.to_owned()),
            assistant: None,
            assistant_id: None,
            metadata: Map::new(),
            ttl: None,
            request: None,
            at,
        };
        match self.0.thread_services.threads.create(new).await? {
            Created::New(row) | Created::Existing(row) => Ok(row.status),
            Created::Taken => Err(ThreadError::Taken(thread.clone())),
            Created::Known(_) => Err(StoreError::Failed(
                "the store reported a known idempotency key for a request without one".to_owned(),
            )
            .into()),
        }
    }
}

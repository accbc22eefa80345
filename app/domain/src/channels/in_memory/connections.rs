//! Connections and codes in memory.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde_json::Map;
use uuid::Uuid;

use super::InMemoryChannels;
use crate::channels::{
    ChannelStoreError, Connection, ConnectionStore, ConsumedCode, ExternalIdentity,
    MAX_PENDING_CODES, NewCode, PendingCode,
};

#[async_trait]
impl ConnectionStore for InMemoryChannels {
    async fn create_code(
        &self,
        code: NewCode,
        at: DateTime<Utc>,
    ) -> Result<PendingCode, ChannelStoreError> {
        let mut tables = self.0.lock();
        tables.codes.retain(|_, code| code.expires_at > at);
        let pending = tables
            .codes
            .values()
            .filter(|known| known.user_id == code.user_id && known.provider == code.provider)
            .count();
        if pending >= MAX_PENDING_CODES {
            return Ok(PendingCode::TooMany);
        }
        tables.codes.insert(code.hash.clone(), code);
        Ok(PendingCode::Created)
    }

    async fn consume_code(
        &self,
        hash: &str,
        identity: &ExternalIdentity,
        (account_name, workspace_name): (Option<String>, Option<String>),
        at: DateTime<Utc>,
    ) -> Result<ConsumedCode, ChannelStoreError> {
        let mut tables = self.0.lock();
        let is_valid = |code: &NewCode| code.provider == identity.provider && code.expires_at > at;
        if !tables.codes.get(hash).is_some_and(is_valid) {
            return Ok(ConsumedCode::Invalid);
        }
        let Some(code) = tables.codes.remove(hash) else {
            return Ok(ConsumedCode::Invalid);
        };
        let id = identity.connection_id(&code.user_id);
        for other in tables.connections.values_mut() {
            if other.identity == *identity && other.active && other.id != id {
                other.active = false;
                other.updated_at = at;
            }
        }
        let connection = tables.connections.entry(id).or_insert_with(|| Connection {
            id,
            user_id: code.user_id,
            identity: identity.clone(),
            account_name: None,
            workspace_name: None,
            active: true,
            metadata: Map::new(),
            created_at: at,
            updated_at: at,
        });
        connection.active = true;
        connection.updated_at = at;
        connection.account_name = account_name.or(connection.account_name.take());
        connection.workspace_name = workspace_name.or(connection.workspace_name.take());
        Ok(ConsumedCode::Connected(Box::new(connection.clone())))
    }

    async fn list(&self, user: &str) -> Result<Vec<Connection>, ChannelStoreError> {
        let tables = self.0.lock();
        let mut found: Vec<Connection> = tables
            .connections
            .values()
            .filter(|connection| connection.user_id == user)
            .cloned()
            .collect();
        found.sort_by_key(|connection| std::cmp::Reverse((connection.created_at, connection.id)));
        Ok(found)
    }

    async fn find_active(
        &self,
        identity: &ExternalIdentity,
    ) -> Result<Option<Connection>, ChannelStoreError> {
        let tables = self.0.lock();
        let found = tables
            .connections
            .values()
            .find(|connection| connection.active && connection.identity == *identity);
        Ok(found.cloned())
    }

    async fn is_suspended(&self, _user: &str) -> Result<bool, ChannelStoreError> {
        Ok(false)
    }

    async fn disconnect(
        &self,
        user: &str,
        id: Uuid,
        at: DateTime<Utc>,
    ) -> Result<bool, ChannelStoreError> {
        let mut tables = self.0.lock();
        let owned = tables
            .connections
            .get_mut(&id)
            .filter(|connection| connection.user_id == user && connection.active);
        Ok(owned
            .map(|connection| {
                connection.active = false;
                connection.updated_at = at;
            })
            .is_some())
    }
    async fn disconnect_all(
        &self,
        provider: &str,
        at: DateTime<Utc>,
    ) -> Result<u64, ChannelStoreError> {
        let mut tables = self.0.lock();
        let active = tables
            .connections
            .values_mut()
            .filter(|connection| connection.identity.provider == provider && connection.active);
        let mut count = 0;
        for connection in active {
            connection.active = false;
            connection.updated_at = at;
            count += 1;
        }
        Ok(count)
    }
}

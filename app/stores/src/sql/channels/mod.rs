//! Channel stores over SQL: one type implements all ports of chat channels.

mod codes;
mod connection_row;
mod connections;
mod conversations;
mod credentials;
mod fence;
mod inbox;
mod inbox_accept;
mod inbox_row;
mod lanes;
mod leases;
mod outbox;
mod outbox_row;
mod rename;

use std::sync::Arc;

use deerflow_domain::channels::{ChannelStoreError, ChannelStores};

use crate::db::connect::Database;
use crate::db::error::{DbFailure, FromDbFailure};

/// Channel stores over SQL.
#[derive(Debug, Clone)]
pub struct SqlChannelStore {
    db: Database,
}

impl SqlChannelStore {
    /// Creates stores over `db`.
    pub fn new(db: Database) -> Self {
        Self { db }
    }

    /// Returns this store as all channel ports.
    pub fn stores(self) -> ChannelStores {
        let stores = Arc::new(self);
        ChannelStores {
            leases: stores.clone(),
            inbox: stores.clone(),
            outbox: stores.clone(),
            conversations: stores.clone(),
            connections: stores.clone(),
            credentials: stores,
        }
    }
}

impl FromDbFailure for ChannelStoreError {
    fn from_db_failure(failure: DbFailure) -> Self {
        Self::Store(failure.into())
    }
}

//! One row of an item, read from any of the queries.

use deerflow_domain::items::{Item, Namespace};
use harness::runtime::runs::store::StoreError;
use sea_orm::{DbErr, QueryResult};

use crate::entity::moment;
use crate::runs::from_json;

/// The columns that [`Row::read`] wants, first in a query. `i` is the table.
pub(super) const COLUMNS: &str = "i.namespace, i.item_key, i.value_json, i.ttl_micros, i.expires_at, i.created_at, i.updated_at";
/// How many they are.
pub(super) const COLUMN_COUNT: usize = 7;

/// An item as it is stored.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) namespace: String,
    pub(super) key: String,
    value_json: String,
    ttl_micros: Option<i64>,
    expires_at: Option<i64>,
    created_at: i64,
    pub(super) updated_at: i64,
}

impl Row {
    pub(super) fn read(row: &QueryResult) -> Result<Self, DbErr> {
        Ok(Self {
            namespace: row.try_get_by_index(0)?,
            key: row.try_get_by_index(1)?,
            value_json: row.try_get_by_index(2)?,
            ttl_micros: row.try_get_by_index(3)?,
            expires_at: row.try_get_by_index(4)?,
            created_at: row.try_get_by_index(5)?,
            updated_at: row.try_get_by_index(6)?,
        })
    }

    pub(super) fn is_there(&self, at: i64) -> bool {
        self.expires_at.is_none_or(|end| end > at)
    }

    pub(super) fn place(&self) -> (String, String) {
        (self.namespace.clone(), self.key.clone())
    }

    /// Its place, if it will end.
    pub(super) fn mortal_place(&self) -> Option<(String, String)> {
        self.ttl_micros.map(|_| self.place())
    }

    pub(super) fn item(self) -> Result<Item, StoreError> {
        let damaged = |reason| StoreError::Failed(format!("item {:?} in {:?} is damaged: {reason}", self.key, self.namespace));
        Ok(Item {
            value: from_json(&self.value_json).map_err(damaged)?,
            namespace: Namespace::from_text(&self.namespace),
            created_at: moment(self.created_at),
            updated_at: moment(self.updated_at),
            key: self.key,
        })
    }

    /// One unreadable row must not hide the others.
    pub(super) fn readable(self) -> Option<Item> {
        self.item().inspect_err(|error| tracing::error!(%error, "an item is left out of a search")).ok()
    }
}

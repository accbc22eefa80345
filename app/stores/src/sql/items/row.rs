//! Row of an item, as each query returns it.

use deerflow_domain::items::{Filter, Item, Namespace};
use deerflow_runtime::runs::store::StoreError;
use sea_orm::{DbErr, QueryResult};

use crate::db::entity::moment;
use crate::db::json::from_json;

/// Columns that [`Row::read`] expects, first in a query with table alias `i`.
pub(super) const COLUMNS: &str =
    "i.namespace, i.item_key, i.value_json, i.ttl_micros, i.expires_at, i.created_at, i.updated_at";
/// Number of [`COLUMNS`].
pub(super) const COLUMN_COUNT: usize = 7;

/// Columns that decide whether an item matches, and its rank.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) item_key: ItemKey,
    expires_at: Option<i64>,
    pub(super) updated_at: i64,
    /// `None` if the search has no filter.
    value_json: Option<String>,
}

/// Namespace and key.
pub(super) type ItemKey = (String, String);

impl Candidate {
    /// Number of columns.
    pub(super) const COLUMN_COUNT: usize = 5;

    /// Returns the columns that [`Candidate::read`] expects, first in a query with table alias `i`.
    pub(super) fn columns(filter: &Filter) -> String {
        let value = if filter.is_empty() {
            "NULL"
        } else {
            "i.value_json"
        };
        format!("i.namespace, i.item_key, i.expires_at, i.updated_at, {value}")
    }

    pub(super) fn read(row: &QueryResult) -> Result<Self, DbErr> {
        Ok(Self {
            item_key: (row.try_get_by_index(0)?, row.try_get_by_index(1)?),
            expires_at: row.try_get_by_index(2)?,
            updated_at: row.try_get_by_index(3)?,
            value_json: row.try_get_by_index(4)?,
        })
    }

    /// Returns `true` if the item is not expired at `at` and passes the filter. An unreadable row
    /// does not match, so that it does not hide the others.
    pub(super) fn matches(&self, filter: &Filter, at: i64) -> bool {
        let damaged = |error: &String| tracing::error!(item_key = ?self.item_key, error, "an item is damaged, omitted from a search");
        let value = || from_json(self.value_json.as_deref().unwrap_or("{}")).inspect_err(damaged);
        self.expires_at.is_none_or(|end| end > at)
            && (filter.is_empty() || value().is_ok_and(|value| filter.matches(&value)))
    }
}

/// A stored item.
#[derive(Debug, Clone)]
pub(super) struct Row {
    namespace: String,
    key: String,
    value_json: String,
    ttl_micros: Option<i64>,
    expires_at: Option<i64>,
    created_at: i64,
    updated_at: i64,
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

    pub(super) fn is_unexpired(&self, at: i64) -> bool {
        self.expires_at.is_none_or(|end| end > at)
    }

    pub(super) fn item_key(&self) -> (String, String) {
        (self.namespace.clone(), self.key.clone())
    }

    /// Returns its key if it has a time to live.
    pub(super) fn expiring_key(&self) -> Option<(String, String)> {
        self.ttl_micros.map(|_| self.item_key())
    }

    pub(super) fn item(self) -> Result<Item, StoreError> {
        let damaged = |reason| {
            StoreError::Failed(format!(
                "item {:?} in {:?} is damaged: {reason}",
                self.key, self.namespace
            ))
        };
        Ok(Item {
            value: from_json(&self.value_json).map_err(damaged)?,
            namespace: Namespace::from_text(&self.namespace),
            created_at: moment(self.created_at),
            updated_at: moment(self.updated_at),
            key: self.key,
        })
    }

    /// Returns `None` for an unreadable row, so that it does not hide the others.
    pub(super) fn readable(self) -> Option<Item> {
        self.item()
            .inspect_err(
                |error| tracing::error!(%error, "an item is damaged, omitted from a search"),
            )
            .ok()
    }
}

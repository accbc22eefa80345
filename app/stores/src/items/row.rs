//! One row of an item, read from any of the queries.

use deerflow_domain::items::{Filter, Item, Namespace};
use harness::runtime::runs::store::StoreError;
use sea_orm::{DbErr, QueryResult};

use crate::entity::moment;
use crate::runs::from_json;

/// The columns that [`Row::read`] wants, first in a query. `i` is the table.
pub(super) const COLUMNS: &str =
    "i.namespace, i.item_key, i.value_json, i.ttl_micros, i.expires_at, i.created_at, i.updated_at";
/// How many they are.
pub(super) const COLUMN_COUNT: usize = 7;

/// What decides whether an item is found, and how early.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) place: Place,
    expires_at: Option<i64>,
    pub(super) updated_at: i64,
    /// Absent where no filter looks at it.
    value_json: Option<String>,
}

/// A namespace and a key.
pub(super) type Place = (String, String);

impl Candidate {
    /// How many columns it has.
    pub(super) const COLUMN_COUNT: usize = 5;

    /// The columns that [`Candidate::read`] wants, first in a query. `i` is the table.
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
            place: (row.try_get_by_index(0)?, row.try_get_by_index(1)?),
            expires_at: row.try_get_by_index(2)?,
            updated_at: row.try_get_by_index(3)?,
            value_json: row.try_get_by_index(4)?,
        })
    }

    /// Whether the item is there at `at` and passes the filter. One unreadable row must not hide the others.
    pub(super) fn fits(&self, filter: &Filter, at: i64) -> bool {
        let damaged = |error: &String| tracing::error!(place = ?self.place, error, "an item is left out of a search");
        let value = || from_json(self.value_json.as_deref().unwrap_or("{}")).inspect_err(damaged);
        self.expires_at.is_none_or(|end| end > at)
            && (filter.is_empty() || value().is_ok_and(|value| filter.matches(&value)))
    }
}

/// An item as it is stored.
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

    /// One unreadable row must not hide the others.
    pub(super) fn readable(self) -> Option<Item> {
        self.item()
            .inspect_err(|error| tracing::error!(%error, "an item is left out of a search"))
            .ok()
    }
}

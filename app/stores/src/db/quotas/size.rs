//! Sizes of the rows of users, measured at intervals.

use std::collections::HashMap;
use std::time::Duration;

use deerflow_runtime::runs::store::StoreError;
use parking_lot::Mutex;
use sea_orm::{ConnectionTrait, DatabaseConnection, DbErr, Statement};
use tokio::time::Instant;

use crate::db::error::read;

/// Minimum time between two measurements of a user.
const INTERVAL: Duration = Duration::from_secs(15);
/// Minimum time after which a user who exceeds the limit is measured again by a request, so that
/// deleted data permits new data.
const INTERVAL_WHEN_EXCEEDED: Duration = Duration::from_secs(1);
/// A measurement may take at most one part in this number of a reader's time.
const MAX_SHARE: u32 = 50;
/// Maximum number of users whose sizes are remembered.
const MAX_USERS: usize = 10_000;

/// Sums of the texts of all tables whose rows grow with the use of the system. A row without texts
/// is small; indexes are not included.
const MEASURE: &[&str] = &[
    "SELECT SUM(OCTET_LENGTH(metadata_json)) FROM threads_meta WHERE user_id = $1",
    "SELECT SUM(OCTET_LENGTH(message_json)) FROM checkpoint_messages \
     WHERE thread_id IN (SELECT thread_id FROM threads_meta WHERE user_id = $1)",
    "SELECT SUM(OCTET_LENGTH(channels_json) + OCTET_LENGTH(layout_json) + OCTET_LENGTH(metadata_json) \
        + COALESCE(OCTET_LENGTH(machine_json), 0)) FROM checkpoints \
     WHERE thread_id IN (SELECT thread_id FROM threads_meta WHERE user_id = $1)",
    "SELECT SUM(OCTET_LENGTH(metadata_json) + OCTET_LENGTH(kwargs_json) + COALESCE(OCTET_LENGTH(recipe_json), 0) \
        + COALESCE(OCTET_LENGTH(completion_json), 0)) FROM runs WHERE user_id = $1",
    "SELECT SUM(OCTET_LENGTH(content) + OCTET_LENGTH(event_metadata)) FROM run_events \
     WHERE thread_id IN (SELECT thread_id FROM threads_meta WHERE user_id = $1)",
    "SELECT SUM(OCTET_LENGTH(value_json)) FROM store_items WHERE user_id = $1",
    "SELECT SUM(OCTET_LENGTH(config_json) + OCTET_LENGTH(context_json) + OCTET_LENGTH(metadata_json)) \
     FROM assistant_versions WHERE assistant_id IN (SELECT assistant_id FROM assistants WHERE user_id = $1)",
    "SELECT SUM(OCTET_LENGTH(content_json)) FROM flow_contents WHERE user_id = $1",
    "SELECT SUM(OCTET_LENGTH(document_json)) FROM memories WHERE user_id = $1",
];

/// Last measured sizes by user.
#[derive(Debug, Default)]
pub(super) struct MeasuredSizes(Mutex<HashMap<String, Measured>>);

#[derive(Debug, Clone, Copy)]
struct Measured {
    bytes: u64,
    at: Instant,
    took: Duration,
    /// `true` if the user has created rows since.
    has_changed: bool,
}

impl Measured {
    /// Reports whether the size has to be measured again in the background.
    fn is_due(&self) -> bool {
        self.has_changed && self.is_older_than(INTERVAL)
    }

    fn is_older_than(&self, interval: Duration) -> bool {
        self.at.elapsed() >= interval.max(self.took * MAX_SHARE)
    }
}

impl MeasuredSizes {
    /// Returns the size of a user who is about to create a row. The first call, and calls while the
    /// size exceeds `limit`, measure it.
    pub(super) async fn of(
        &self,
        db: &DatabaseConnection,
        user: &str,
        limit: u64,
    ) -> Result<u64, StoreError> {
        if let Some(size) = self.0.lock().get_mut(user) {
            size.has_changed = true;
            if size.bytes < limit || !size.is_older_than(INTERVAL_WHEN_EXCEEDED) {
                return Ok(size.bytes);
            }
        }
        read(self.measured(db, user).await)
    }

    /// Discards all measurements.
    pub(super) fn clear(&self) {
        self.0.lock().clear();
    }

    /// Measures the users that have created rows since their last measurement.
    pub(super) async fn refresh(&self, db: &DatabaseConnection) {
        let due: Vec<_> = {
            let sizes = self.0.lock();
            let due = sizes.iter().filter(|(_, size)| size.is_due());
            due.map(|(user, _)| user.clone()).collect()
        };
        for user in due {
            if let Err(error) = self.measured(db, &user).await {
                tracing::warn!(%error, "failed to measure the data of a user");
                return;
            }
        }
    }

    async fn measured(&self, db: &DatabaseConnection, user: &str) -> Result<u64, DbErr> {
        let at = Instant::now();
        let bytes = stored_bytes(db, user).await?;
        let mut sizes = self.0.lock();
        if sizes.len() >= MAX_USERS {
            sizes.clear();
        }
        let measured = Measured {
            bytes,
            at,
            took: at.elapsed(),
            has_changed: false,
        };
        sizes.insert(user.to_owned(), measured);
        Ok(bytes)
    }
}

/// Measures the rows of a user.
pub(crate) async fn stored_bytes(db: &DatabaseConnection, user: &str) -> Result<u64, DbErr> {
    let mut bytes = 0;
    for sql in MEASURE {
        // Sums of Postgres are decimal numbers.
        let sql = format!("SELECT CAST(COALESCE(({sql}), 0) AS BIGINT)");
        let statement =
            Statement::from_sql_and_values(db.get_database_backend(), sql, [user.into()]);
        if let Some(row) = db.query_one_raw(statement).await? {
            bytes += row.try_get_by_index::<i64>(0)?.unsigned_abs();
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_measurements_are_repeated_less_often() {
        let measured = |age: u64, took: u64, has_changed| Measured {
            bytes: 1,
            at: Instant::now() - Duration::from_secs(age),
            took: Duration::from_secs(took),
            has_changed,
        };
        assert!(measured(16, 0, true).is_due());
        assert!(!measured(14, 0, true).is_due());
        assert!(!measured(16, 0, false).is_due(), "no new rows");
        assert!(!measured(99, 2, true).is_due(), "2 of 100 s");
        assert!(measured(101, 2, true).is_due());
    }
}

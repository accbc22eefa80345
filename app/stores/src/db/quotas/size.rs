//! Sizes of the rows of users, measured at intervals.

use std::collections::HashMap;
use std::time::Duration;

use deerflow_core::quota::Measurement;
use parking_lot::Mutex;
use sea_orm::{ConnectionTrait, DatabaseConnection, DbErr, Statement};
use tokio::time::Instant;

/// Minimum time between two measurements of a user.
const INTERVAL: Duration = Duration::from_secs(15);
/// Time between two measurements of a user who has created no rows.
const IDLE_INTERVAL: Duration = Duration::from_secs(120);
/// Time after the last creation for which a user is measured.
const RETENTION: Duration = Duration::from_secs(60 * 60);
/// Maximum time that a request waits for a measurement.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// Minimum time after which a user who exceeds the limit is measured again by a request, so that
/// deleted data permits new data.
const INTERVAL_WHEN_EXCEEDED: Duration = Duration::from_secs(1);

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
    "SELECT SUM(OCTET_LENGTH(part_text)) FROM run_text_parts \
     WHERE run_id IN (SELECT run_id FROM runs WHERE user_id = $1)",
    "SELECT SUM(OCTET_LENGTH(content) + OCTET_LENGTH(event_metadata) + COALESCE(OCTET_LENGTH(long_content), 0)) FROM run_events \
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
    last: Measurement,
    /// `true` if the user has created rows since that start.
    has_changed: bool,
    /// Time of the user's last creation.
    used_at: Instant,
}

impl Measured {
    fn new(now: Instant) -> Self {
        Self {
            bytes: 0,
            last: Measurement::start(),
            has_changed: true,
            used_at: now,
        }
    }

    /// Reports whether the size has to be measured again in the background.
    fn is_due(&self) -> bool {
        // Runs write rows after their creation.
        let interval = if self.has_changed {
            INTERVAL
        } else {
            IDLE_INTERVAL
        };
        self.last.may_be_repeated(interval)
    }
}

impl MeasuredSizes {
    /// Returns the size of a user who is about to create a row. The first call, and calls while the
    /// size exceeds `limit`, measure it. A size that cannot be measured in time does not exceed the
    /// limit.
    pub(super) async fn of(&self, db: &DatabaseConnection, user: &str, limit: u64) -> u64 {
        {
            let mut sizes = self.0.lock();
            let now = Instant::now();
            match sizes.get_mut(user) {
                Some(size) => {
                    (size.has_changed, size.used_at) = (true, now);
                    if size.bytes < limit || !size.last.may_be_repeated(INTERVAL_WHEN_EXCEEDED) {
                        return size.bytes;
                    }
                    // Concurrent requests do not measure as well.
                    size.last = Measurement::start();
                }
                None => {
                    if sizes.len() >= Measurement::MAX_USERS {
                        sizes.clear();
                    }
                    sizes.insert(user.to_owned(), Measured::new(now));
                }
            }
        }
        let measured = tokio::time::timeout(REQUEST_TIMEOUT, self.measure(db, user)).await;
        if measured.is_err() {
            tracing::warn!("the data of a user is measured in the background: it took too long");
        }
        self.0.lock().get(user).map_or(0, |size| size.bytes)
    }

    /// Discards all measurements.
    pub(super) fn clear(&self) {
        self.0.lock().clear();
    }

    /// Measures the users that may have new rows since their last measurement.
    pub(super) async fn refresh(&self, db: &DatabaseConnection) {
        let due: Vec<_> = {
            let mut sizes = self.0.lock();
            sizes.retain(|_, size| size.used_at.elapsed() < RETENTION);
            let due = sizes.iter().filter(|(_, size)| size.is_due());
            due.map(|(user, _)| user.clone()).collect()
        };
        for user in due {
            self.measure(db, &user).await;
        }
    }

    async fn measure(&self, db: &DatabaseConnection, user: &str) {
        let started = Measurement::start();
        if let Some(size) = self.0.lock().get_mut(user) {
            size.has_changed = false;
        }
        let measured = stored_bytes(db, user).await;
        let mut sizes = self.0.lock();
        let Some(size) = sizes.get_mut(user) else {
            return;
        };
        size.last = started.ended();
        match measured {
            Ok(bytes) => size.bytes = bytes,
            Err(error) => tracing::warn!(%error, "failed to measure the data of a user"),
        }
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

    #[tokio::test(start_paused = true)]
    async fn idle_users_are_measured_less_often() {
        let changed = Measured::new(Instant::now());
        let idle = Measured {
            has_changed: false,
            ..changed
        };
        let second = Duration::from_secs(1);
        tokio::time::advance(INTERVAL - second).await;
        assert!(!changed.is_due());
        tokio::time::advance(second).await;
        assert!(changed.is_due());
        assert!(!idle.is_due(), "no new rows");
        tokio::time::advance(IDLE_INTERVAL - INTERVAL).await;
        assert!(idle.is_due());
    }
}

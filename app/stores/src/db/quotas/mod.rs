//! Quotas of users, checked by the writes that create rows.

mod check;
pub(crate) mod count;
pub(crate) mod size;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use deerflow_core::quota::{Quota, QuotaExceeded, UserQuotas};
use parking_lot::{Mutex, RwLock};
use sea_orm::DatabaseConnection;
use tokio::time::Instant;

pub(crate) use check::QuotaCheck;
use size::MeasuredSizes;

/// Part of the free amount that a process may use before it counts again is one in this number, so
/// that as many processes that count at the same time cannot exceed the limit together.
const MAX_PROCESSES: u64 = 16;
/// Minimum free amount for which rows are not counted each time.
const MIN_FREE: u64 = 1_000;
/// Time after which rows are counted again, because other processes may have used the free amount.
const ALLOWANCE_LIFETIME: Duration = Duration::from_secs(5);
/// Maximum number of users whose free amount is remembered.
const MAX_USERS: usize = 10_000;

/// Quotas of the users of a database. Clones share them; without a call of [`Quotas::set`] all are
/// unlimited.
#[derive(Debug, Clone, Default)]
pub struct Quotas(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    limits: RwLock<UserQuotas>,
    /// Rows that a user may create before they are counted again, with the time of the last count.
    uncounted: Mutex<HashMap<(Quota, String), (u64, Instant)>>,
    sizes: MeasuredSizes,
}

impl Quotas {
    /// Sets the limits of each user, and discards earlier counts and measurements. Data that exceeds
    /// the limits already stays.
    pub fn set(&self, limits: UserQuotas) {
        *self.0.limits.write() = limits;
        self.0.uncounted.lock().clear();
        self.0.sizes.clear();
    }

    /// Checks the size of the rows of a user, as it was measured last.
    ///
    /// # Errors
    /// [`QuotaExceeded`] with the measured size.
    async fn check_size(
        &self,
        db: &DatabaseConnection,
        user: Option<&str>,
    ) -> Result<(), QuotaExceeded> {
        let limit = self.0.limits.read().stored_bytes;
        let (Some(limit), Some(user)) = (limit, user) else {
            return Ok(());
        };
        let used = self.0.sizes.of(db, user, limit).await;
        let quota = Quota::StoredBytes;
        if used >= limit {
            return Err(QuotaExceeded { quota, used, limit });
        }
        Ok(())
    }

    /// Reports whether sizes are limited.
    pub(crate) fn limit_sizes(&self) -> bool {
        self.0.limits.read().stored_bytes.is_some()
    }

    /// Measures the rows of the users that have created some since their last measurement.
    pub(crate) async fn measure(&self, db: &DatabaseConnection) {
        if self.limit_sizes() {
            self.0.sizes.refresh(db).await;
        }
    }

    /// Returns the limit and the user if the rows have to be counted.
    fn to_count<'a>(&self, quota: Quota, user: Option<&'a str>) -> Option<(u64, &'a str)> {
        let limit = self.0.limits.read().limit(quota)?;
        let user = user?;
        match self.0.uncounted.lock().get_mut(&(quota, user.to_owned())) {
            Some((rows, at)) if *rows > 0 && at.elapsed() < ALLOWANCE_LIFETIME => {
                *rows -= 1;
                None
            }
            _ => Some((limit, user)),
        }
    }

    fn remember(&self, quota: Quota, user: &str, free: u64) {
        if free < MIN_FREE {
            return;
        }
        let mut uncounted = self.0.uncounted.lock();
        if uncounted.len() >= MAX_USERS {
            uncounted.clear();
        }
        let allowance = (free / MAX_PROCESSES, Instant::now());
        uncounted.insert((quota, user.to_owned()), allowance);
    }
}

//! Clock of the database server, which all nodes over one database share: as an expression of SQL,
//! and as a clock of the process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use deerflow_core::clock::{Clock, SystemClock};
use deerflow_core::tasks::{TaskKind, Tasks};
use deerflow_runtime::runs::store::StoreError;
use parking_lot::RwLock;
use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, DbErr, Statement};

use crate::db::connect::Database;
use crate::db::entity::moment;
use crate::db::error::read;

/// Interval between reads of the server's time. In between, this machine's monotonic clock advances
/// it.
const REFRESH_INTERVAL: Duration = Duration::from_secs(5);
/// A slower answer is too inaccurate and is ignored.
const MAX_ROUND_TRIP: Duration = Duration::from_secs(1);

/// SQL expression for the database's time in microseconds. With exclusive use leases do not expire,
/// so SQLite's clock is good enough.
pub(crate) fn now_of(backend: DbBackend) -> &'static str {
    match backend {
        DbBackend::Postgres => "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::BIGINT",
        _ => "CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
    }
}

/// Clock of a Postgres server.
///
/// Due times, leases and deadlines are written by one node and evaluated by others, whose clocks
/// may differ by hours. This clock is not affected by changes of the machine's clock.
#[derive(Debug)]
pub struct PostgresClock(RwLock<ServerTime>);

#[derive(Debug, Clone, Copy)]
struct ServerTime {
    at: Instant,
    time: DateTime<Utc>,
}

impl Clock for PostgresClock {
    fn now(&self) -> DateTime<Utc> {
        let ServerTime { at, time } = *self.0.read();
        TimeDelta::from_std(at.elapsed())
            .ok()
            .and_then(|since| time.checked_add_signed(since))
            .unwrap_or(time)
    }
}

impl Database {
    /// Returns the clock for all stored times: the server's if several nodes may share the
    /// database, else the machine's.
    pub async fn clock(&self, tasks: &Tasks) -> Result<Arc<dyn Clock>, StoreError> {
        let connection = self.lease_reads().clone();
        if connection.get_database_backend() != DbBackend::Postgres {
            return Ok(Arc::new(SystemClock));
        }
        let clock = Arc::new(PostgresClock(RwLock::new(read(
            query_time(&connection).await,
        )?)));
        tasks.spawn(
            TaskKind::Service,
            "database clock",
            refresh_loop(clock.clone(), connection, tasks.token().clone()),
        );
        Ok(clock)
    }
}

async fn refresh_loop(
    clock: Arc<PostgresClock>,
    connection: DatabaseConnection,
    stop: tokio_util::sync::CancellationToken,
) {
    while stop
        .run_until_cancelled(tokio::time::sleep(REFRESH_INTERVAL))
        .await
        .is_some()
    {
        let started = Instant::now();
        match query_time(&connection).await {
            Ok(reading) if started.elapsed() <= MAX_ROUND_TRIP => *clock.0.write() = reading,
            Ok(_) => tracing::debug!("the database returned its time too slowly"),
            Err(error) => tracing::debug!(%error, "the database did not return its time"),
        }
    }
}

/// Reads the server's time, dated to the middle of the round trip.
async fn query_time(connection: &DatabaseConnection) -> Result<ServerTime, DbErr> {
    let backend = connection.get_database_backend();
    let started = Instant::now();
    let row = connection
        .query_one_raw(Statement::from_string(
            backend,
            format!("SELECT {}", now_of(backend)),
        ))
        .await?;
    let time: i64 = row
        .ok_or_else(|| DbErr::Custom("the database did not return its time".to_owned()))?
        .try_get_by_index(0)?;
    Ok(ServerTime {
        at: started + started.elapsed() / 2,
        time: moment(time),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_advances_from_last_reading_despite_machine_clock() {
        let a_day_ahead = SystemClock.now() + TimeDelta::days(1);
        let clock = PostgresClock(RwLock::new(ServerTime {
            at: Instant::now() - Duration::from_secs(7),
            time: a_day_ahead,
        }));
        let since = clock.now() - a_day_ahead;
        assert!(
            since >= TimeDelta::seconds(7) && since < TimeDelta::seconds(60),
            "{since}"
        );
    }
}

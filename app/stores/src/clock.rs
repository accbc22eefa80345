//! The time that all nodes over one database agree on: the server's.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use harness::clock::{Clock, SystemClock};
use harness::runtime::runs::store::StoreError;
use harness::runtime::tasks::{TaskKind, Tasks};
use parking_lot::RwLock;
use sea_orm::{ConnectionTrait, DatabaseConnection, DbErr, Statement};

use crate::connect::Database;
use crate::entity::moment;
use crate::error::read;
use crate::nodes::now_of;

/// How often the server is asked. In between, this machine's monotonic clock goes on from its last answer.
const ASK_EVERY: Duration = Duration::from_secs(5);
/// An answer that took longer says too little about the present.
const PROMPT: Duration = Duration::from_secs(1);

/// The time of a Postgres server.
///
/// What is due, leased or over is written by one node and judged by others, whose own clocks may be a day apart. This one follows no
/// change of the machine's clock.
#[derive(Debug)]
pub struct PostgresClock(RwLock<Answer>);

#[derive(Debug, Clone, Copy)]
struct Answer {
    at: Instant,
    time: DateTime<Utc>,
}

impl Clock for PostgresClock {
    fn now(&self) -> DateTime<Utc> {
        let Answer { at, time } = *self.0.read();
        TimeDelta::from_std(at.elapsed())
            .ok()
            .and_then(|since| time.checked_add_signed(since))
            .unwrap_or(time)
    }
}

impl Database {
    /// The clock of everything that is written here: the server's where several nodes may share it, else the machine's.
    pub async fn clock(&self, tasks: &Tasks) -> Result<Arc<dyn Clock>, StoreError> {
        let connection = self.lease_reads().clone();
        if connection.get_database_backend() != sea_orm::DbBackend::Postgres {
            return Ok(Arc::new(SystemClock));
        }
        let clock = Arc::new(PostgresClock(RwLock::new(read(ask(&connection).await)?)));
        tasks.spawn(
            TaskKind::Service,
            "database clock",
            keep(clock.clone(), connection, tasks.token().clone()),
        );
        Ok(clock)
    }
}

async fn keep(
    clock: Arc<PostgresClock>,
    connection: DatabaseConnection,
    stop: tokio_util::sync::CancellationToken,
) {
    while stop
        .run_until_cancelled(tokio::time::sleep(ASK_EVERY))
        .await
        .is_some()
    {
        let asked = Instant::now();
        match ask(&connection).await {
            Ok(answer) if asked.elapsed() <= PROMPT => *clock.0.write() = answer,
            Ok(_) => tracing::debug!("the database tells the time too slowly"),
            Err(error) => tracing::debug!(%error, "the database does not tell the time"),
        }
    }
}

/// What the server says, as of the middle of the way there and back.
async fn ask(connection: &DatabaseConnection) -> Result<Answer, DbErr> {
    let backend = connection.get_database_backend();
    let asked = Instant::now();
    let row = connection
        .query_one_raw(Statement::from_string(
            backend,
            format!("SELECT {}", now_of(backend)),
        ))
        .await?;
    let time: i64 = row
        .ok_or_else(|| DbErr::Custom("the database does not tell the time".to_owned()))?
        .try_get_by_index(0)?;
    Ok(Answer {
        at: asked + asked.elapsed() / 2,
        time: moment(time),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_from_the_last_answer_whatever_the_machine_says() {
        let a_day_ahead = SystemClock.now() + TimeDelta::days(1);
        let clock = PostgresClock(RwLock::new(Answer {
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

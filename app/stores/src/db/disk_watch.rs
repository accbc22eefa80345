//! Watches the disk of a SQLite database: checks that its files are unchanged, and releases its
//! reserve when the disk is full.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deerflow_domain::readiness::NotReady;
use parking_lot::Mutex;
use sea_orm::{ConnectionTrait, DatabaseConnection, DbErr, Statement};
use tokio::time::Instant;

use crate::db::error::DbFailure;
use crate::db::space::{Space, WriteClass, headroom, is_allowed};
use crate::files::data_lock::DataLock;
use crate::files::database_files::DatabaseFiles;
use crate::files::reserve::Reserve;
use crate::files::trial_file::is_full;

/// Interval between attempts to allocate the reserve again, and its maximum after repeated
/// releases.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
const MAX_RETRY_INTERVAL: Duration = Duration::from_secs(60);
/// A release within this time after the last recovery doubles the interval.
const RELAPSE_WINDOW: Duration = Duration::from_secs(60);
/// Interval between attempts to complete a partial reserve.
const GROW_INTERVAL: Duration = Duration::from_secs(60);

/// Cause of a failed write.
#[derive(Debug)]
pub(crate) enum Cause {
    /// The disk was full, and the reserve is released now: writes may be retried if their class may
    /// use it.
    ReserveReleased,
    /// The cause is this failure.
    DbFailure(DbFailure),
    /// No cause was found on the disk.
    Unknown,
}

/// Watch of the disk. The writer checks it before and after each transaction.
#[derive(Debug)]
pub(crate) struct DiskWatch {
    files: DatabaseFiles,
    /// Shared with blocking tasks.
    reserve: Arc<Mutex<Reserve>>,
    size: u64,
    whole: bool,
    /// Read by other tasks.
    low: Arc<AtomicBool>,
    files_changed: Option<NotReady>,
    next_attempt: Instant,
    retry_interval: Duration,
    recovered_at: Option<Instant>,
}

impl DiskWatch {
    /// Starts to watch the files in `directory`, whose database is open. Space is low from the
    /// start if the reserve is missing and cannot be allocated.
    pub(crate) fn start(
        directory: &Path,
        lock: &DataLock,
        mut reserve: Reserve,
    ) -> io::Result<Self> {
        let files = DatabaseFiles::record(directory, lock)?;
        if reserve.reserved() < reserve.size() {
            let space = Space {
                size: reserve.size(),
                reserved: reserve.reserved(),
                free: reserve.free()?,
                reusable: 0,
            };
            if let Some(target) = space.reserve_target()
                && let Err(error) = reserve.hold(target.reserve, target.headroom_bytes)
            {
                tracing::debug!(%error, "cannot allocate the disk reserve");
            }
        }
        let (size, reserved) = (reserve.size(), reserve.reserved());
        let low = reserved < size / 2;
        if low {
            let free = reserve.free()?;
            tracing::error!(
                size,
                free,
                "the disk is too full for the reserve: deletes are allowed, creations are refused until there is space"
            );
        }
        let now = Instant::now();
        Ok(Self {
            files,
            reserve: Arc::new(Mutex::new(reserve)),
            size,
            whole: reserved >= size,
            low: Arc::new(AtomicBool::new(low)),
            files_changed: None,
            next_attempt: now + RETRY_INTERVAL,
            retry_interval: RETRY_INTERVAL,
            recovered_at: None,
        })
    }

    /// Fails if a file of the database was removed or replaced.
    pub(crate) fn check_files(&mut self) -> Result<(), DbFailure> {
        let found = self.files.check().err();
        if found != self.files_changed {
            match found {
                Some(reason) => {
                    tracing::error!(%reason, "the files of the database were changed by another program: writes are refused until they are back or the process is restarted")
                }
                None => tracing::warn!("the files of the database are back"),
            }
            self.files_changed = found;
        }
        found.map_or(Ok(()), |reason| Err(DbFailure::Gone(reason)))
    }

    /// Fails if a new connection would open another file, or create one.
    pub(crate) fn check_before_connecting(&self) -> Result<(), DbFailure> {
        self.files.check_permanent().map_err(DbFailure::Gone)
    }

    /// Records the files of a new connection, which must have read the database.
    pub(crate) fn connected(&mut self) -> Result<(), DbFailure> {
        self.check_before_connecting()?;
        self.files
            .record_companions()
            .map_err(|error| DbFailure::Disk(error.to_string()))
    }

    /// Checks that a write is allowed.
    pub(crate) fn admit(&self, class: WriteClass) -> Result<(), DbFailure> {
        if !self.is_low() {
            return Ok(());
        }
        let free = self.reserve.lock().free().unwrap_or(0);
        if is_allowed(class, free, self.size) {
            Ok(())
        } else {
            Err(full())
        }
    }

    /// Returns `true` if space is low.
    pub(crate) fn is_low(&self) -> bool {
        self.low.load(Ordering::Relaxed)
    }

    /// Returns the flag behind [`DiskWatch::is_low`], for other tasks.
    pub(crate) fn low_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.low)
    }

    /// Returns the time of the next attempt of [`DiskWatch::recover`].
    pub(crate) fn next_attempt(&self) -> Option<Instant> {
        (self.is_low() || !self.whole).then_some(self.next_attempt)
    }

    /// Allocates the reserve again, or more of it, if there is space.
    pub(crate) async fn recover(&mut self, database: &DatabaseConnection) {
        if self.next_attempt().is_none_or(|at| Instant::now() < at) {
            return;
        }
        let reusable = reusable(database).await.unwrap_or_else(|error| {
            tracing::debug!(%error, "cannot count the free pages of the database");
            0
        });
        let allocated = self.blocking(move |reserve| {
            let space = Space {
                size: reserve.size(),
                reserved: reserve.reserved(),
                free: reserve.free()?,
                reusable,
            };
            let Some(target) = space.reserve_target() else {
                return Ok(None);
            };
            reserve
                .hold(target.reserve, target.headroom_bytes)
                .map(|()| Some(reserve.reserved()))
        });
        match allocated.await {
            Ok(Some(reserved)) => {
                if self.is_low() {
                    tracing::warn!(
                        reserve_bytes = reserved,
                        "the disk has space again: all writes are allowed"
                    );
                    self.recovered_at = Some(Instant::now());
                }
                self.low.store(false, Ordering::Relaxed);
                self.whole = reserved >= self.size;
            }
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "cannot allocate the disk reserve yet"),
        }
        self.next_attempt = Instant::now()
            + if self.is_low() {
                self.retry_interval
            } else {
                GROW_INTERVAL
            };
    }

    /// Determines if a write failed for lack of space, and releases the reserve in that case.
    pub(crate) async fn diagnose(&mut self, database: &DatabaseConnection) -> Cause {
        let size = self.size;
        let diagnosed = self.blocking(move |reserve| match reserve.try_allocate(headroom(size)) {
            Ok(()) => Ok(Cause::Unknown),
            Err(error) if is_full(&error) => reserve.release().map(|gave| {
                if gave {
                    Cause::ReserveReleased
                } else {
                    Cause::DbFailure(full())
                }
            }),
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                Ok(Cause::DbFailure(DbFailure::ReadOnly(error.to_string())))
            }
            Err(error) => Err(error),
        });
        let cause = diagnosed.await.unwrap_or_else(|error| {
            tracing::error!(%error, "the disk of the database fails");
            Cause::Unknown
        });
        match cause {
            Cause::ReserveReleased => {
                tracing::error!(
                    reserve_bytes = size,
                    "the disk is full: the reserve is released for deletes and ends of runs, creations are refused"
                );
                self.mark_low();
                // Writes the WAL back, so that it can restart. Impossible while there are readers;
                // a later commit tries again.
                if let Err(error) = database
                    .execute_unprepared("PRAGMA wal_checkpoint(PASSIVE)")
                    .await
                {
                    tracing::debug!(%error, "cannot write back the WAL of the database yet");
                }
            }
            Cause::DbFailure(DbFailure::Full(_)) if !self.is_low() => {
                tracing::error!("the disk is full, and there is no reserve to release");
                self.mark_low();
            }
            Cause::DbFailure(_) | Cause::Unknown => {}
        }
        cause
    }

    fn mark_low(&mut self) {
        let soon = self
            .recovered_at
            .is_some_and(|at| at.elapsed() < RELAPSE_WINDOW);
        self.retry_interval = if soon {
            (self.retry_interval * 2).min(MAX_RETRY_INTERVAL)
        } else {
            RETRY_INTERVAL
        };
        self.next_attempt = Instant::now() + self.retry_interval;
        self.low.store(true, Ordering::Relaxed);
        self.whole = false;
    }

    /// Runs blocking disk work on a blocking thread.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Reserve) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let reserve = Arc::clone(&self.reserve);
        tokio::task::spawn_blocking(move || work(&mut reserve.lock()))
            .await
            .map_err(io::Error::other)?
    }
}

fn full() -> DbFailure {
    DbFailure::Full("disk full".to_owned())
}

/// Returns the bytes of free pages inside the database file.
async fn reusable(database: &DatabaseConnection) -> Result<u64, DbErr> {
    let sql = "SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size";
    let row = database
        .query_one_raw(Statement::from_string(database.get_database_backend(), sql))
        .await?;
    Ok(row
        .map_or(Ok(0), |row| row.try_get_by_index::<i64>(0))?
        .unsigned_abs())
}

//! Watch over the disk below a SQLite database: its files are where they were opened, and its reserve gives room when there is no other.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deerflow_domain::readiness::NotReady;
use parking_lot::Mutex;
use sea_orm::{ConnectionTrait, DatabaseConnection, DbErr, Statement};
use tokio::time::Instant;

use crate::error::Fault;
use crate::files::DatabaseFiles;
use crate::lock::DataLock;
use crate::reserve::Reserve;
use crate::space::{Class, Space, headroom, may_go_on};

/// Time between two attempts to take the reserve again, and the longest one when it had to be released soon after.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A release within this time after the last recovery makes the next pause longer.
const SOON: Duration = Duration::from_secs(60);
/// Time between two attempts to make a partial reserve whole.
const GROW_EVERY: Duration = Duration::from_secs(60);

/// Result of a search for the cause of a failed write.
#[derive(Debug)]
pub(crate) enum Cause {
    /// The disk was full, and there is room now: what frees space can be tried again.
    RoomMade,
    /// The fault that it comes to.
    Fault(Fault),
    /// Nothing that can be seen from here.
    Unknown,
}

/// The watch. The writer asks it before and after each transaction.
#[derive(Debug)]
pub(crate) struct DiskWatch {
    files: DatabaseFiles,
    /// Blocking work takes it along.
    reserve: Arc<Mutex<Reserve>>,
    size: u64,
    whole: bool,
    /// Others read it.
    low: Arc<AtomicBool>,
    gone: Option<NotReady>,
    next_attempt: Instant,
    pause: Duration,
    recovered_at: Option<Instant>,
}

impl DiskWatch {
    /// Starts to watch the files in `directory`, whose database is open. Space is low from the start where the reserve is neither there
    /// nor to be had.
    pub(crate) fn start(
        directory: &Path,
        lock: &DataLock,
        mut reserve: Reserve,
    ) -> io::Result<Self> {
        let files = DatabaseFiles::record(directory, lock)?;
        if reserve.held() < reserve.size() {
            let space = Space {
                size: reserve.size(),
                held: reserve.held(),
                free: reserve.free()?,
                reusable: 0,
            };
            if let Some(take) = space.take()
                && let Err(error) = reserve.hold(take.reserve, take.besides)
            {
                tracing::debug!(%error, "the disk reserve cannot be allocated");
            }
        }
        let (size, held) = (reserve.size(), reserve.held());
        let low = held < size / 2;
        if low {
            let free = reserve.free()?;
            tracing::error!(
                size,
                free,
                "the disk is too full for the reserve: deletes go on, creations are refused until there is space"
            );
        }
        let now = Instant::now();
        Ok(Self {
            files,
            reserve: Arc::new(Mutex::new(reserve)),
            size,
            whole: held >= size,
            low: Arc::new(AtomicBool::new(low)),
            gone: None,
            next_attempt: now + PAUSE,
            pause: PAUSE,
            recovered_at: None,
        })
    }

    /// Fails when a file of the database is not where it was opened.
    pub(crate) fn check_files(&mut self) -> Result<(), Fault> {
        let found = self.files.check().err();
        if found != self.gone {
            match found {
                Some(reason) => {
                    tracing::error!(%reason, "the files of the database changed under this process: nothing is written until they are back or it is restarted")
                }
                None => tracing::warn!("the files of the database are back"),
            }
            self.gone = found;
        }
        found.map_or(Ok(()), |reason| Err(Fault::Gone(reason)))
    }

    /// Fails when another connection would open something else, or make a new file.
    pub(crate) fn check_before_connecting(&self) -> Result<(), Fault> {
        self.files.check_lasting().map_err(Fault::Gone)
    }

    /// Records what the new connection uses, which must have read the database.
    pub(crate) fn connected(&mut self) -> Result<(), Fault> {
        self.check_before_connecting()?;
        self.files
            .record_beside()
            .map_err(|error| Fault::Disk(error.to_string()))
    }

    /// Decides whether a write may go on.
    pub(crate) fn admit(&self, class: Class) -> Result<(), Fault> {
        if !self.is_low() {
            return Ok(());
        }
        let free = self.reserve.lock().free().unwrap_or(0);
        if may_go_on(class, free, self.size) {
            Ok(())
        } else {
            Err(full())
        }
    }

    /// Returns whether space is low.
    pub(crate) fn is_low(&self) -> bool {
        self.low.load(Ordering::Relaxed)
    }

    /// The flag that [`DiskWatch::is_low`] tells, for other tasks.
    pub(crate) fn low_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.low)
    }

    /// The next moment at which [`DiskWatch::recover`] does something.
    pub(crate) fn next_attempt(&self) -> Option<Instant> {
        (self.is_low() || !self.whole).then_some(self.next_attempt)
    }

    /// Takes the reserve again, or more of it, where there is space for it.
    pub(crate) async fn recover(&mut self, database: &DatabaseConnection) {
        if self.next_attempt().is_none_or(|at| Instant::now() < at) {
            return;
        }
        let reusable = reusable(database).await.unwrap_or_else(|error| {
            tracing::debug!(%error, "the free pages of the database cannot be counted");
            0
        });
        let taken = self.blocking(move |reserve| {
            let space = Space {
                size: reserve.size(),
                held: reserve.held(),
                free: reserve.free()?,
                reusable,
            };
            let Some(take) = space.take() else {
                return Ok(None);
            };
            reserve
                .hold(take.reserve, take.besides)
                .map(|()| Some(reserve.held()))
        });
        match taken.await {
            Ok(Some(held)) => {
                if self.is_low() {
                    tracing::warn!(
                        reserve_bytes = held,
                        "the disk has space again: everything is taken again"
                    );
                    self.recovered_at = Some(Instant::now());
                }
                self.low.store(false, Ordering::Relaxed);
                self.whole = held >= self.size;
            }
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "the disk reserve cannot be taken yet"),
        }
        self.next_attempt = Instant::now()
            + if self.is_low() {
                self.pause
            } else {
                GROW_EVERY
            };
    }

    /// Finds out whether a write failed for want of space, and releases the reserve in that case.
    pub(crate) async fn look_into(&mut self, database: &DatabaseConnection) -> Cause {
        let size = self.size;
        let looked = self.blocking(move |reserve| match reserve.try_out(headroom(size)) {
            Ok(()) => Ok(Cause::Unknown),
            Err(error) if is_full(&error) => reserve.release().map(|gave| {
                if gave {
                    Cause::RoomMade
                } else {
                    Cause::Fault(full())
                }
            }),
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                Ok(Cause::Fault(Fault::ReadOnly(error.to_string())))
            }
            Err(error) => Err(error),
        });
        let cause = looked.await.unwrap_or_else(|error| {
            tracing::error!(%error, "the disk below the database fails");
            Cause::Unknown
        });
        match cause {
            Cause::RoomMade => {
                tracing::error!(
                    reserve_bytes = size,
                    "the disk is full: the reserve is released for deletes and ends of runs, creations are refused"
                );
                self.lower();
                // Into the file, so that the log can begin anew. It may be impossible while there are readers; a later commit tries again.
                if let Err(error) = database
                    .execute_unprepared("PRAGMA wal_checkpoint(PASSIVE)")
                    .await
                {
                    tracing::debug!(%error, "the log of the database is not written back yet");
                }
            }
            Cause::Fault(Fault::Full(_)) if !self.is_low() => {
                tracing::error!("the disk is full, and there is no reserve to release");
                self.lower();
            }
            Cause::Fault(_) | Cause::Unknown => {}
        }
        cause
    }

    fn lower(&mut self) {
        let soon = self.recovered_at.is_some_and(|at| at.elapsed() < SOON);
        self.pause = if soon {
            (self.pause * 2).min(LONGEST_PAUSE)
        } else {
            PAUSE
        };
        self.next_attempt = Instant::now() + self.pause;
        self.low.store(true, Ordering::Relaxed);
        self.whole = false;
    }

    /// Does what may wait for the disk on a thread that may wait.
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

fn full() -> Fault {
    Fault::Full("disk full".to_owned())
}

/// Recognizes errors of a full disk or an exhausted quota.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// Bytes of pages inside of the database file that hold nothing.
async fn reusable(database: &DatabaseConnection) -> Result<u64, DbErr> {
    let sql = "SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size";
    let row = database
        .query_one_raw(Statement::from_string(database.get_database_backend(), sql))
        .await?;
    Ok(row
        .map_or(Ok(0), |row| row.try_get_by_index::<i64>(0))?
        .unsigned_abs())
}

//! Quota of the files of each user: uploads, workspaces and outputs of all threads.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::blocking_task::run_blocking;
use super::file_error::FileFailure;
use super::pending_file::is_unfinished_upload;
use super::thread_dirs::UserDirName;
use deerflow_core::ids::ThreadId;
use deerflow_core::quota::{Measurement, Quota, QuotaExceeded};

/// Minimum time between two measurements of a user.
const INTERVAL: Duration = Duration::from_secs(5);

/// Quota of the files of each user. Clones share it.
///
/// Uploads and copies of threads are rejected by it. Files that tools write are measured with the
/// others.
#[derive(Debug, Clone)]
pub struct FileQuota(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    home: PathBuf,
    limit: Mutex<Option<u64>>,
    users: Mutex<HashMap<String, UserFiles>>,
}

#[derive(Debug, Default)]
struct UserFiles {
    /// Last measured size, with the uploads since.
    bytes: u64,
    /// Bytes that uploads in progress may still write.
    reserved: u64,
    /// Sum of all finished uploads.
    finished: u64,
    /// Last measurement.
    measured: Option<Measurement>,
}

/// Bytes that an upload may write, released on drop.
#[derive(Debug)]
pub struct FileReservation {
    quota: FileQuota,
    user: String,
    bytes: u64,
}

impl FileQuota {
    /// Creates a quota of the users of a runtime home; `None` is unlimited.
    pub fn new(home: impl Into<PathBuf>, limit: Option<u64>) -> Self {
        Self(Arc::new(Shared {
            home: home.into(),
            limit: Mutex::new(limit),
            users: Mutex::default(),
        }))
    }

    /// Sets the limit of each user in bytes. Existing files stay.
    pub fn set(&self, limit: Option<u64>) {
        *self.0.limit.lock() = limit;
    }

    /// Reserves up to `bytes` for an upload of a user, and less if less is free. Returns `None` if
    /// files are not limited.
    ///
    /// # Errors
    /// [`QuotaExceeded`] if nothing is free. A failed measurement counts as the last one.
    pub async fn reserve(
        &self,
        user: &str,
        bytes: u64,
    ) -> Result<Option<FileReservation>, QuotaExceeded> {
        let Some(limit) = *self.0.limit.lock() else {
            return Ok(None);
        };
        if let Some(finished) = self.begin_measurement(user) {
            self.measure(user, finished).await;
        }
        let mut users = self.0.users.lock();
        let files = users.entry(user.to_owned()).or_default();
        let used = files.bytes.saturating_add(files.reserved);
        if used >= limit {
            let quota = Quota::FileBytes;
            return Err(QuotaExceeded { quota, used, limit });
        }
        let bytes = bytes.min(limit - used);
        files.reserved += bytes;
        Ok(Some(FileReservation {
            quota: self.clone(),
            user: user.to_owned(),
            bytes,
        }))
    }

    /// Reserves all of `bytes` for files of a user. Returns `None` if files are not limited.
    ///
    /// # Errors
    /// [`QuotaExceeded`] if less is free.
    pub async fn reserve_all(
        &self,
        user: &str,
        bytes: u64,
    ) -> Result<Option<FileReservation>, QuotaExceeded> {
        match self.reserve(user, bytes).await? {
            Some(reservation) if reservation.bytes() < bytes => Err(reservation.exceeded()),
            reservation => Ok(reservation),
        }
    }

    /// Reserves the size of the files of a thread for a copy of them. Returns `None` if files are not
    /// limited.
    ///
    /// # Errors
    /// [`QuotaExceeded`] if less is free. A thread that cannot be measured needs one byte.
    pub async fn reserve_copy(
        &self,
        user: &str,
        thread: &ThreadId,
    ) -> Result<Option<FileReservation>, QuotaExceeded> {
        if self.0.limit.lock().is_none() {
            return Ok(None);
        }
        let files = threads_of(&self.0.home, user).join(thread.as_str());
        let measured = run_blocking(move || measure(files)).await;
        let bytes = measured.unwrap_or_else(|error| {
            tracing::warn!(%error, thread_id = %thread, "failed to measure the files of a thread");
            1
        });
        // A copy without files is permitted.
        if bytes == 0 {
            return Ok(None);
        }
        self.reserve_all(user, bytes).await
    }

    /// Returns the sum of finished uploads if the user has to be measured. Concurrent uploads do not
    /// measure as well.
    fn begin_measurement(&self, user: &str) -> Option<u64> {
        let mut users = self.0.users.lock();
        if users.len() >= Measurement::MAX_USERS {
            users.retain(|_, files| files.reserved > 0);
        }
        let files = users.entry(user.to_owned()).or_default();
        let is_recent = |last: Measurement| !last.may_be_repeated(INTERVAL);
        if files.measured.is_some_and(is_recent) {
            return None;
        }
        files.measured = Some(Measurement::start());
        Some(files.finished)
    }

    async fn measure(&self, user: &str, finished_before: u64) {
        let (home, name) = (self.0.home.clone(), user.to_owned());
        let started = Measurement::start();
        let measured = run_blocking(move || measure_user_files(&home, &name)).await;
        let mut users = self.0.users.lock();
        let files = users.entry(user.to_owned()).or_default();
        match measured {
            // Uploads that finished meanwhile may be missing in the result.
            Ok(bytes) => files.bytes = bytes + files.finished.wrapping_sub(finished_before),
            Err(error) => tracing::warn!(%error, "failed to measure the files of a user"),
        }
        files.measured = Some(started.ended());
    }
}

impl FileReservation {
    /// Returns the number of bytes that the upload may write.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the error of an upload that needs more.
    pub fn exceeded(&self) -> QuotaExceeded {
        let limit = self.quota.0.limit.lock().unwrap_or(u64::MAX);
        let used = limit.saturating_sub(self.bytes);
        QuotaExceeded {
            quota: Quota::FileBytes,
            used,
            limit,
        }
    }

    /// Releases the reservation of an upload that has written `written` bytes.
    pub fn finish(self, written: u64) {
        if let Some(files) = self.quota.0.users.lock().get_mut(&self.user) {
            files.bytes = files.bytes.saturating_add(written);
            files.finished = files.finished.wrapping_add(written);
        }
    }
}

impl Drop for FileReservation {
    fn drop(&mut self) {
        if let Some(files) = self.quota.0.users.lock().get_mut(&self.user) {
            files.reserved = files.reserved.saturating_sub(self.bytes);
        }
    }
}

/// Measures the files of all threads of a user, in bytes. Links are not followed, and files that
/// disappear meanwhile are skipped.
///
/// # Errors
/// [`FileFailure`] if a directory cannot be read.
pub fn measure_user_files(home: &Path, user: &str) -> Result<u64, FileFailure> {
    measure(threads_of(home, user))
}

/// Returns the folder of the threads of a user.
fn threads_of(home: &Path, user: &str) -> PathBuf {
    let name = UserDirName::from_user_id(user);
    home.join("users").join(name.as_str()).join("threads")
}

/// Measures the files below a folder.
fn measure(folder: PathBuf) -> Result<u64, FileFailure> {
    let (mut bytes, mut open) = (0_u64, vec![folder]);
    while let Some(directory) = open.pop() {
        let entries = match std::fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error.into()),
        };
        for entry in entries {
            let entry = entry?;
            if is_unfinished_upload(&entry.file_name().to_string_lossy()) {
                // Its reservation counts.
                continue;
            }
            // The metadata of a link are its own.
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            if metadata.is_dir() {
                open.push(entry.path());
            } else {
                bytes = bytes.saturating_add(metadata.len());
            }
        }
    }
    Ok(bytes)
}

#[cfg(test)]
#[path = "file_quota_tests.rs"]
mod tests;

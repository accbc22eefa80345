//! Upkeep of a database by its operator: integrity check, vacuum, backup and restore.
//!
//! Check, vacuum on Postgres, and backup work while a server is running. Restore, and vacuum of a
//! SQLite file, need the database alone: they acquire the lock of the data directory.

mod backup;
mod check;
mod checksum;
mod copies;
mod error;
mod former;
mod partial;
mod restore;
mod vacuum;

pub use backup::BackedUp;
pub use check::Integrity;
pub use error::UpkeepError;
pub use restore::Restored;
pub use vacuum::Vacuumed;

#[cfg(test)]
mod interruption_tests;
#[cfg(test)]
mod upkeep_tests;

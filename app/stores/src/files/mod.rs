//! Files of the data directory: the lock, the files of the database and their ids, the reserve, trial
//! writes, and the repair after an interrupted restore.

pub(crate) mod companions;
pub(crate) mod data_lock;
pub(crate) mod database_files;
pub(crate) mod file_id;
pub(crate) mod interrupted_restore;
pub(crate) mod reserve;
pub(crate) mod trial_file;

//! Data of users besides plain rows, as it is deleted with an account.

mod folder;
mod locked_journal;
mod threads;

pub(crate) use folder::UserFolder;
pub(crate) use locked_journal::with_request;
pub(crate) use threads::UserThreads;

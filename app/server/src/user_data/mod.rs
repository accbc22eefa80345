//! Data of users besides plain rows, as it is deleted with an account.

mod folder;
mod threads;

pub(crate) use folder::UserFolder;
pub(crate) use threads::UserThreads;

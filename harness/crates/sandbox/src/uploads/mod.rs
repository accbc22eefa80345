//! Uploads: files of a request that are stored in a thread atomically.
//!
//! A [`UploadBatch`] receives the files of one request in chunks, under names chosen by `name`, and
//! makes them visible together. `view` contains the responses for clients; `markdown` converts
//! documents.

mod batch;
mod error;
mod listing;
mod markdown;
mod name;
mod view;

pub use batch::{PendingUpload, UploadBatch, UploadLimits};
pub use error::UploadError;
pub use listing::{list, remove};
pub use name::upload_path;
pub use view::{UploadList, UploadRemoved, Uploaded, UploadedFile};

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::uploads::PendingUpload as ComingUpload;
#[doc(hidden)]
pub use crate::uploads::upload_path as place_named;

#[cfg(test)]
#[path = "uploads_tests.rs"]
mod tests;

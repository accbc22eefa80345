//! What users hand in: files of a thread that come together, all of them or none.
//!
//! A [`UploadBatch`] takes the files of one request in pieces, under names that `name` decides on, and has them appear at once. What
//! clients are told of them is `shown`; the Markdown beside documents is made in `markdown`.

mod batch;
mod error;
mod markdown;
mod name;
mod shown;
mod there;

pub use batch::{ComingUpload, UploadBatch, UploadLimits};
pub use error::UploadError;
pub use name::place_named;
pub use shown::{UploadList, UploadRemoved, Uploaded, UploadedFile};
pub use there::{list, remove};

#[cfg(test)]
#[path = "uploads_tests.rs"]
mod tests;

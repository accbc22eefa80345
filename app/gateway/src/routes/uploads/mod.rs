//! `/threads/{t}/uploads`: files of the user. Files may be uploaded before their thread exists;
//! they are stored under the caller's own directory, even if another user has a thread with the
//! same id.

mod delete;
mod list;
mod post;

pub(crate) use delete::delete;
pub(crate) use list::list;
pub(crate) use post::post;

use harness::uploads::UploadError;

use crate::error::{ApiError, capitalized};

impl From<UploadError> for ApiError {
    fn from(error: UploadError) -> Self {
        let text = capitalized(&error.to_string());
        match error {
            UploadError::Nothing | UploadError::InvalidName | UploadError::NotAFile(_) => {
                Self::BadRequest(text)
            }
            UploadError::TooMany(_) | UploadError::FileTooLarge(_) | UploadError::TooMuch => {
                Self::FileTooLarge(text)
            }
            UploadError::NotFound(_) => Self::NotFound(text),
            UploadError::File(error) => error.into(),
            _ => Self::Internal(text),
        }
    }
}

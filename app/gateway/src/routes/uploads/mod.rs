//! `/threads/{t}/uploads`: what the user hands in. Files may come before their thread does; they lie under the caller's own
//! directory, whoever else has a thread of that id.

mod delete;
mod list;
mod post;

pub(crate) use delete::delete;
pub(crate) use list::list;
pub(crate) use post::post;

use harness::uploads::UploadError;

use crate::error::{ApiError, sentence};

impl From<UploadError> for ApiError {
    fn from(error: UploadError) -> Self {
        let text = sentence(&error.to_string());
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

//! Downloads of received files.

use bytes::Bytes;
use serde_json::json;

use crate::platform::{IncomingFile, PlatformError};

use super::adapter::{MAX_RECEIVED, TelegramPlatform};
use super::failure::{Failure, Problem};

impl TelegramPlatform {
    /// Downloads a file of at most `max` bytes.
    pub(super) async fn download_file(
        &self,
        file: &IncomingFile,
        max: u64,
    ) -> Result<Bytes, PlatformError> {
        let max = max.min(MAX_RECEIVED);
        if file.size.is_some_and(|size| size > max) {
            return Err(too_large(max));
        }
        let Some(id) = file.reference["file_id"].as_str() else {
            return Err(PlatformError::Refused("the file has no id".to_owned()));
        };
        let described = self
            .api
            .call("getFile", &json!({"file_id": id}))
            .await
            .map_err(|failure| words(failure, max))?;
        let Some(path) = described["file_path"].as_str() else {
            return Err(PlatformError::Refused(
                "telegram does not offer the file for download, send it again".to_owned(),
            ));
        };
        self.api
            .download(path, max)
            .await
            .map_err(|failure| words(failure, max))
    }
}

/// Returns the error with words for the sender.
fn words(failure: Failure, max: u64) -> PlatformError {
    let description = failure.description.to_lowercase();
    match failure.problem {
        Problem::Refused
            if description.contains("too big") || description.contains("more than") =>
        {
            too_large(max)
        }
        Problem::Refused | Problem::NotFound => PlatformError::Refused(
            "the file is not available on telegram any more, send it again".to_owned(),
        ),
        _ => failure.into(),
    }
}

fn too_large(max: u64) -> PlatformError {
    PlatformError::Refused(format!(
        "the file is larger than {} MB, send a smaller one",
        max / (1024 * 1024)
    ))
}

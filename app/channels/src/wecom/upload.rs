//! Uploads of files through the long connection.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest, Md5};
use serde_json::json;

use super::failure::{self, Outcome};
use super::frame::{self, FrameAnswer};
use super::line::Line;
use crate::platform::{FileBody, PlatformError};

/// Size of all chunks but the last.
const CHUNK_BYTES: usize = 512 * 1024;
/// Maximum number of chunks.
const MAX_CHUNKS: usize = 100;
/// Maximum size of an image; a larger one is sent as a file.
const MAX_IMAGE_BYTES: usize = 2 * 1024 * 1024;
/// Number of attempts for a chunk.
const ATTEMPTS: u32 = 3;

/// Returns the kind of a message with a file.
pub(super) fn kind(file: &FileBody) -> &'static str {
    let is_image = matches!(
        file.media_type.as_str(),
        "image/png" | "image/jpeg" | "image/gif"
    );
    if is_image && file.bytes.len() <= MAX_IMAGE_BYTES {
        "image"
    } else {
        "file"
    }
}

/// Uploads a file. Returns its media id, which is valid for three days.
pub(super) async fn upload(
    line: &Line,
    file: &FileBody,
    now_ms: i64,
) -> Result<String, PlatformError> {
    let chunks: Vec<&[u8]> = file.bytes.chunks(CHUNK_BYTES).collect();
    if chunks.is_empty() || chunks.len() > MAX_CHUNKS {
        return Err(PlatformError::Refused(format!(
            "wecom takes no file of {} bytes",
            file.bytes.len()
        )));
    }
    let call = async |command: &'static str, body| {
        let answer = line
            .call(command, frame::new_request_id(command, now_ms), body)
            .await?;
        accepted(answer)
    };
    let answer = call(
        "aibot_upload_media_init",
        json!({
            "type": kind(file),
            "filename": file.name,
            "total_size": file.bytes.len(),
            "total_chunks": chunks.len(),
            "md5": hex::encode(Md5::digest(&file.bytes)),
        }),
    )
    .await?;
    let upload_id = text(&answer, "upload_id")?;
    for (index, chunk) in chunks.iter().enumerate() {
        let mut attempt = 1;
        loop {
            let body = json!({
                "upload_id": upload_id,
                "chunk_index": index,
                "base64_data": STANDARD.encode(chunk),
            });
            match call("aibot_upload_media_chunk", body).await {
                Ok(_) => break,
                Err(PlatformError::Unavailable(_)) if attempt < ATTEMPTS => attempt += 1,
                Err(error) => return Err(error),
            }
        }
    }
    let answer = call("aibot_upload_media_finish", json!({"upload_id": upload_id})).await?;
    text(&answer, "media_id")
}

fn accepted(answer: FrameAnswer) -> Result<FrameAnswer, PlatformError> {
    match failure::outcome(&answer) {
        Outcome::Done => Ok(answer),
        Outcome::Failed(error) => Err(error),
        Outcome::Unknown | Outcome::Expired => Err(PlatformError::Unavailable(
            "the upload to wecom expired".to_owned(),
        )),
    }
}

fn text(answer: &FrameAnswer, key: &str) -> Result<String, PlatformError> {
    answer.body[key]
        .as_str()
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
        .ok_or_else(|| PlatformError::Unavailable(format!("wecom returned no {key}")))
}

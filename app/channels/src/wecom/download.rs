//! Downloads of received files.

use bytes::Bytes;
use harness::net::{GuardedClient, forbidden};
use http::Method;
use reqwest::Response;

use super::crypt::Decryption;
use crate::platform::{IncomingFile, PlatformError};

/// Maximum number of bytes by which encryption makes a file longer.
const PADDING: u64 = 32;

/// Downloads and decrypts a file. It is never sent a token: its address contains one.
pub(super) async fn download(
    client: &GuardedClient,
    file: &IncomingFile,
    max: u64,
) -> Result<Bytes, PlatformError> {
    let refused = |text: &str| PlatformError::Refused(text.to_owned());
    let address = file.reference["url"].as_str().unwrap_or_default();
    let url = client
        .read(address)
        .map_err(|_| refused("the address of the file is not allowed"))?;
    let mut decryption = match file.reference["aeskey"].as_str() {
        Some(key) => {
            Some(Decryption::new(key).ok_or_else(|| refused("the key of the file is invalid"))?)
        }
        None => None,
    };
    let request = client
        .request(Method::GET, url)
        .map_err(|_| refused("the address of the file is not allowed"))?;
    let mut response = request
        .send()
        .await
        .map_err(|error| match forbidden(&error) {
            Some(_) => refused("the address of the file is not allowed"),
            None => unavailable(error),
        })?;
    check(&response, max)?;
    let mut plain = Vec::new();
    let mut length = 0_u64;
    while let Some(piece) = response.chunk().await.map_err(unavailable)? {
        length += piece.len() as u64;
        if length > max + PADDING {
            return Err(too_large(max));
        }
        match &mut decryption {
            Some(decryption) => decryption.update(&piece),
            None => plain.extend_from_slice(&piece),
        }
    }
    let content = match decryption {
        Some(decryption) => decryption
            .finish()
            .ok_or_else(|| refused("the file cannot be decrypted, send it again"))?,
        None => plain,
    };
    if content.len() as u64 > max {
        return Err(too_large(max));
    }
    Ok(content.into())
}

fn check(response: &Response, max: u64) -> Result<(), PlatformError> {
    let status = response.status();
    if status.is_server_error() {
        return Err(PlatformError::Unavailable(format!(
            "the file server failed with status {}",
            status.as_u16()
        )));
    }
    if !status.is_success() {
        return Err(PlatformError::Refused(
            "the file is no longer available, send it again".to_owned(),
        ));
    }
    match response.content_length() {
        Some(length) if length > max + PADDING => Err(too_large(max)),
        _ => Ok(()),
    }
}

fn unavailable(error: reqwest::Error) -> PlatformError {
    PlatformError::Unavailable(format!("the download failed: {}", error.without_url()))
}

fn too_large(max: u64) -> PlatformError {
    PlatformError::Refused(format!("the file is larger than {max} bytes"))
}

//! Downloads of received files.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use url::Url;

use super::rest::Rest;
use crate::platform::{IncomingFile, PlatformError};

/// Hosts of Discord's files.
const HOSTS: [&str; 2] = ["cdn.discordapp.com", "media.discordapp.net"];
/// Timeout of a download.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Downloads a file of at most `max` bytes. The token is not sent.
pub(super) async fn download(
    rest: &Rest,
    file: &IncomingFile,
    max: u64,
) -> Result<Bytes, PlatformError> {
    if file.size.is_some_and(|size| size > max) {
        return Err(too_large());
    }
    let url = file.reference["url"].as_str().unwrap_or_default();
    let address = permitted(url, rest.base())?;
    match fetch(rest, address, max).await? {
        Some(bytes) => Ok(bytes),
        // The signature of an address expires after a day.
        None => match rest.refresh_url(url).await {
            Ok(Some(renewed)) => {
                let address = permitted(&renewed, rest.base())?;
                fetch(rest, address, max).await?.ok_or_else(gone)
            }
            _ => Err(gone()),
        },
    }
}

/// Returns the bytes, or `None` if the file is not at the address.
async fn fetch(rest: &Rest, address: Url, max: u64) -> Result<Option<Bytes>, PlatformError> {
    let unavailable =
        |error: reqwest::Error| PlatformError::Unavailable(error.without_url().to_string());
    let request = rest.http().get(address).timeout(TIMEOUT);
    let mut response = request.send().await.map_err(unavailable)?;
    match response.status() {
        StatusCode::OK => {}
        StatusCode::NOT_FOUND | StatusCode::FORBIDDEN | StatusCode::GONE => return Ok(None),
        status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
            return Err(PlatformError::Unavailable(format!(
                "the file host of Discord answered with status {}",
                status.as_u16()
            )));
        }
        status => {
            return Err(PlatformError::Refused(format!(
                "the file cannot be downloaded (status {})",
                status.as_u16()
            )));
        }
    }
    if response.content_length().is_some_and(|length| length > max) {
        return Err(too_large());
    }
    let mut bytes = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(unavailable)? {
        if (bytes.len() + chunk.len()) as u64 > max {
            return Err(too_large());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(Some(bytes.freeze()))
}

/// Checks that an address belongs to Discord's file hosts, or to the configured server.
fn permitted(url: &str, base: &Url) -> Result<Url, PlatformError> {
    let refused = || PlatformError::Refused("the file is not on a host of Discord".to_owned());
    let address = Url::parse(url).map_err(|_| refused())?;
    let is_of_discord = address.scheme() == "https"
        && address.port().is_none()
        && address.host_str().is_some_and(|host| HOSTS.contains(&host));
    let has_credentials = !address.username().is_empty() || address.password().is_some();
    if (is_of_discord || address.origin() == base.origin()) && !has_credentials {
        Ok(address)
    } else {
        Err(refused())
    }
}

fn too_large() -> PlatformError {
    PlatformError::Refused("the file is too large".to_owned())
}

fn gone() -> PlatformError {
    PlatformError::Refused("the file does not exist any more".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hosts_of_the_platform_are_permitted() {
        let base = Url::parse("http://127.0.0.1:4000/api/v10").unwrap();
        for url in [
            "https://cdn.discordapp.com/attachments/1/2/a.txt?ex=1",
            "https://media.discordapp.net/a",
            "http://127.0.0.1:4000/attachments/1/a",
        ] {
            assert!(permitted(url, &base).is_ok(), "{url}");
        }
        for url in [
            "",
            "a.txt",
            "http://cdn.discordapp.com/a",
            "https://cdn.discordapp.com.evil.example/a",
            "https://cdn.discordapp.com@evil.example/a",
            "https://user:pass@cdn.discordapp.com/a",
            "https://cdn.discordapp.com:8443/a",
            "http://127.0.0.1:4001/a",
            "http://169.254.169.254/latest",
            "file:///etc/passwd",
        ] {
            assert!(permitted(url, &base).is_err(), "{url}");
        }
    }
}

//! Downloads of received files.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::Method;
use serde_json::json;
use url::Url;

use super::answers::ApiError;
use super::api::Api;
use crate::platform::{IncomingFile, PlatformError};

/// Domains of DingTalk's files.
const DOMAINS: [&str; 3] = ["dingtalk.com", "aliyuncs.com", "alicdn.com"];
/// Timeout of a download.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Downloads a file of at most `max` bytes. The token is sent to the REST API only.
pub(super) async fn download(
    api: &Api,
    file: &IncomingFile,
    max: u64,
) -> Result<Bytes, PlatformError> {
    if file.size.is_some_and(|size| size > max) {
        return Err(too_large());
    }
    let robot = file.reference["robot"].as_str();
    let body = json!({
        "downloadCode": file.reference["code"],
        "robotCode": robot.unwrap_or(&api.options().client_id),
    });
    let path = "v1.0/robot/messageFiles/download";
    let answer = api
        .call(Method::POST, path, &body)
        .await
        .map_err(|error| match error {
            ApiError::Code {
                status: 400 | 404, ..
            } => PlatformError::Refused("the file does not exist any more".to_owned()),
            other => other.into(),
        })?;
    let url = answer["downloadUrl"].as_str().unwrap_or_default();
    fetch(api, permitted(url, &api.options().api_base)?, max).await
}

async fn fetch(api: &Api, address: Url, max: u64) -> Result<Bytes, PlatformError> {
    let unavailable =
        |error: reqwest::Error| PlatformError::Unavailable(error.without_url().to_string());
    let request = api.http().get(address).timeout(TIMEOUT);
    let mut response = request.send().await.map_err(unavailable)?;
    let status = response.status();
    if status.is_server_error() {
        return Err(PlatformError::Unavailable(format!(
            "the file host of DingTalk answered with status {}",
            status.as_u16()
        )));
    }
    if !status.is_success() {
        return Err(PlatformError::Refused(format!(
            "the file cannot be downloaded (status {})",
            status.as_u16()
        )));
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
    Ok(bytes.freeze())
}

/// Checks that an address belongs to DingTalk's file hosts, or to the configured server.
fn permitted(url: &str, base: &Url) -> Result<Url, PlatformError> {
    let refused = || PlatformError::Refused("the file is not on a host of DingTalk".to_owned());
    let mut address = Url::parse(url).map_err(|_| refused())?;
    let is_of_platform = address.host_str().is_some_and(|host| {
        DOMAINS.iter().any(|domain| {
            host == *domain
                || host
                    .strip_suffix(domain)
                    .is_some_and(|rest| rest.ends_with('.'))
        })
    });
    let has_credentials = !address.username().is_empty() || address.password().is_some();
    if has_credentials {
        return Err(refused());
    }
    if address.origin() == base.origin() {
        return Ok(address);
    }
    if !is_of_platform || address.port().is_some() {
        return Err(refused());
    }
    // Some addresses name plain HTTP; the hosts serve TLS too.
    if address.scheme() == "http" && address.set_scheme("https").is_err()
        || address.scheme() != "https"
    {
        return Err(refused());
    }
    Ok(address)
}

fn too_large() -> PlatformError {
    PlatformError::Refused("the file is too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hosts_of_the_platform_are_permitted() {
        let base = Url::parse("http://127.0.0.1:4000").unwrap();
        let scheme = |url: &str| permitted(url, &base).map(|url| url.scheme().to_owned());
        assert_eq!(scheme("https://down.dingtalk.com/a").unwrap(), "https");
        assert_eq!(
            scheme("http://x.oss-cn-hangzhou.aliyuncs.com/a?s=1").unwrap(),
            "https"
        );
        assert_eq!(scheme("http://127.0.0.1:4000/files/a").unwrap(), "http");
        for url in [
            "",
            "https://evildingtalk.com/a",
            "https://dingtalk.com.evil.example/a",
            "https://down.dingtalk.com@evil.example/a",
            "https://down.dingtalk.com:8443/a",
            "ftp://down.dingtalk.com/a",
            "http://127.0.0.1:4001/a",
            "http://169.254.169.254/latest",
        ] {
            assert!(scheme(url).is_err(), "{url}");
        }
    }
}

//! Files that were received.

use bytes::Bytes;
use http::{StatusCode, header};
use serde_json::Value;
use url::Url;

use super::api::{Api, Body, read};
use super::failure::platform_error;
use crate::platform::{IncomingFile, PlatformError};

/// Downloads a file of at most `max` bytes.
pub(super) async fn download(
    api: &Api,
    file: &IncomingFile,
    max: u64,
) -> Result<Bytes, PlatformError> {
    let too_large = || {
        let megabytes = max / (1024 * 1024);
        PlatformError::Refused(format!("the file is larger than {megabytes} MB"))
    };
    if file.size.is_some_and(|size| size > max) {
        return Err(too_large());
    }
    let address = match file.reference["url"].as_str() {
        Some(url) => url.to_owned(),
        None => ask_address(api, file).await?,
    };
    let address = Url::parse(&address)
        .ok()
        .filter(|address| api.is_platform_address(address))
        .ok_or_else(|| PlatformError::Refused("the file is not stored on slack".to_owned()))?;
    let mut response = api.get_file(address).await?;
    let header_of = |name| {
        let value = response.headers().get(name);
        value
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_ascii_lowercase()
    };
    let is_html = header_of(header::CONTENT_TYPE).starts_with("text/html");
    let is_attachment = header_of(header::CONTENT_DISPOSITION).starts_with("attachment");
    match response.status() {
        StatusCode::OK => {}
        status if status.is_redirection() => return Err(login_page()),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(login_page()),
        StatusCode::NOT_FOUND | StatusCode::GONE => {
            return Err(PlatformError::Refused(
                "the file is no longer on slack".to_owned(),
            ));
        }
        status => {
            return Err(PlatformError::Unavailable(format!(
                "slack answered a download with status {}",
                status.as_u16()
            )));
        }
    }
    let body = read(&mut response, max)
        .await
        .map_err(PlatformError::Unavailable)?;
    let body = body.ok_or_else(too_large)?;
    if is_login_page(file, &body, is_html, is_attachment) {
        return Err(login_page());
    }
    Ok(body)
}

async fn ask_address(api: &Api, file: &IncomingFile) -> Result<String, PlatformError> {
    let method = "files.info";
    let id = file.reference["id"].as_str().unwrap_or_default().to_owned();
    let answer = api
        .call(method, Body::Form(vec![("file", id)]))
        .await
        .map_err(|failure| platform_error(method, failure))?;
    address_in(&answer["file"])
        .ok_or_else(|| PlatformError::Refused("the file is no longer on slack".to_owned()))
}

fn address_in(file: &Value) -> Option<String> {
    let url = file["url_private_download"]
        .as_str()
        .or_else(|| file["url_private"].as_str());
    url.map(str::to_owned)
}

/// Returns `true` if an answer is Slack's login page instead of the file.
fn is_login_page(file: &IncomingFile, body: &[u8], is_html: bool, is_attachment: bool) -> bool {
    if is_attachment {
        return false;
    }
    let declared_html = file
        .media_type
        .as_deref()
        .is_some_and(|kind| kind.starts_with("text/html"));
    if declared_html {
        return is_html && file.size != Some(body.len() as u64);
    }
    let start: Vec<u8> = body
        .iter()
        .copied()
        .skip_while(u8::is_ascii_whitespace)
        .take(14)
        .map(|byte| byte.to_ascii_lowercase())
        .collect();
    is_html || start.starts_with(b"<!doctype html") || start.starts_with(b"<html")
}

fn login_page() -> PlatformError {
    PlatformError::Refused(
        "slack did not give the file to the bot: its token may lack the scope files:read"
            .to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(media_type: &str, size: u64) -> IncomingFile {
        IncomingFile {
            name: None,
            media_type: Some(media_type.to_owned()),
            size: Some(size),
            reference: Value::Null,
        }
    }

    #[test]
    fn login_page_is_no_file() {
        let page = b" <!DOCTYPE html><html>";
        assert!(is_login_page(&file("image/png", 5), page, true, false));
        assert!(is_login_page(&file("image/png", 5), page, false, false));
        assert!(is_login_page(&file("text/html", 5), page, true, false));
        assert!(!is_login_page(
            &file("text/html", page.len() as u64),
            page,
            true,
            false
        ));
        assert!(!is_login_page(&file("text/plain", 5), page, true, true));
        assert!(!is_login_page(
            &file("text/plain", 5),
            b"hello",
            false,
            false
        ));
    }
}

//! Address of the long connection, configuration of the client, and refused handshakes.

use std::time::Duration;

use http::{HeaderMap, StatusCode};
use serde_json::Value;
use url::Url;

use super::failure::{FeishuFailure, judge, number};
use crate::platform::PlatformError;
use crate::socket::{OpenError, RefusedUpgrade};

/// Interval of pings without a configuration.
const PING_INTERVAL: Duration = Duration::from_secs(120);

/// Address of the socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SocketAddress {
    /// Address with its ticket.
    pub(super) url: Url,
    /// Service that all frames name.
    pub(super) service: i32,
    /// Interval of pings.
    pub(super) ping: Duration,
}

/// Returns the address of an answer. Refusals are final except for the codes 1 and 1000040343.
pub(super) fn address_of(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<SocketAddress, PlatformError> {
    let code = serde_json::from_slice::<Value>(body)
        .ok()
        .and_then(|value| number(&value["code"]));
    let body = match judge(status, headers, body) {
        Ok(body) => body,
        Err(failure) => {
            let is_again = matches!(code, None | Some(0 | 1 | 1_000_040_343))
                || matches!(
                    failure,
                    FeishuFailure::RateLimited(_)
                        | FeishuFailure::Busy
                        | FeishuFailure::Unavailable(_)
                );
            return Err(match (failure, is_again) {
                (failure @ (FeishuFailure::RateLimited(_) | FeishuFailure::Busy), _) => {
                    failure.into_error(1)
                }
                (failure, true) => PlatformError::Unavailable(words(failure)),
                (failure, false) => PlatformError::Rejected(words(failure)),
            });
        }
    };
    let data = &body["data"];
    let unusable = |problem: &str| PlatformError::Unavailable(problem.to_owned());
    let url = data["URL"]
        .as_str()
        .and_then(|text| Url::parse(text).ok())
        .ok_or_else(|| unusable("the platform named no address for the connection"))?;
    if !is_safe(&url) {
        return Err(unusable(
            "the platform named an address without TLS for the connection",
        ));
    }
    let service = url
        .query_pairs()
        .find(|(key, _)| key == "service_id")
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or_default();
    Ok(SocketAddress {
        url,
        service,
        ping: ping_interval(&data["ClientConfig"]).unwrap_or(PING_INTERVAL),
    })
}

fn words(failure: FeishuFailure) -> String {
    match failure {
        FeishuFailure::TargetGone(text)
        | FeishuFailure::ContentRefused(text)
        | FeishuFailure::MissingScope(text)
        | FeishuFailure::Refused(text)
        | FeishuFailure::Rejected(text)
        | FeishuFailure::Unavailable(text) => format!("the long connection was refused: {text}"),
        other => format!("the long connection was refused: {other:?}"),
    }
}

/// `true` for TLS and for loopback hosts.
fn is_safe(url: &Url) -> bool {
    let is_loopback = match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    };
    match url.scheme() {
        "wss" => true,
        "ws" => is_loopback,
        _ => false,
    }
}

/// Returns the interval of pings in a configuration.
pub(super) fn ping_interval(config: &Value) -> Option<Duration> {
    let seconds = number(&config["PingInterval"])?.clamp(1, 600);
    u64::try_from(seconds).ok().map(Duration::from_secs)
}

/// Returns the error of a socket that was not opened.
pub(super) fn open_error(error: OpenError) -> PlatformError {
    match error {
        OpenError::Refused(refusal) => refused_handshake(&refusal),
        OpenError::Unreachable(_) => error.into(),
    }
}

fn refused_handshake(refusal: &RefusedUpgrade) -> PlatformError {
    let header = |name: &str| {
        refusal
            .headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(|text| text.chars().take(200).collect::<String>())
    };
    let status = header("handshake-status");
    let message = header("handshake-msg").unwrap_or_default();
    let code = header("handshake-autherrcode");
    match (status.as_deref(), code.as_deref()) {
        (Some("514"), Some("1000040350")) => PlatformError::Rejected(
            "too many connections of this app are open: close other clients of it, then restart \
             the channel"
                .to_owned(),
        ),
        (Some("403"), _) => PlatformError::Rejected(format!(
            "the platform forbids the long connection: {message}"
        )),
        _ => PlatformError::Unavailable(format!(
            "the handshake was refused with status {}: {message}",
            status.unwrap_or_else(|| refusal.status.as_u16().to_string())
        )),
    }
}

#[cfg(test)]
#[path = "endpoint_tests.rs"]
mod tests;

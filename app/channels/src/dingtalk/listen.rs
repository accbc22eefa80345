//! Listening: connections one after another.

use http::HeaderMap;
use secrecy::ExposeSecret;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::api::{Api, Endpoint};
use super::connection::{self, Ended, Parts};
use super::frames::TOPIC;
use super::settings::PROVIDER;
use crate::platform::{EventSink, PlatformError, Settings};
use crate::socket::Socket;

/// Delivers messages until `stop` or an error.
pub(super) async fn run(
    api: &Api,
    sink: &dyn EventSink,
    stop: &CancellationToken,
) -> Result<(), PlatformError> {
    let options = api.options();
    let parts = Parts {
        sink,
        stop,
        robot: &options.client_id,
        intervals: options.intervals,
    };
    loop {
        let socket = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            socket = open(api) => socket?,
        };
        sink.connected();
        let opened = Instant::now();
        match connection::run(socket, parts).await {
            Ended::Stopped => return Ok(()),
            Ended::Failed(error) => return Err(error),
            Ended::Announced => tracing::debug!("dingtalk asked for a new connection"),
        }
        // A platform that ends connections at once is not asked without pauses.
        if opened.elapsed() < options.intervals.ping {
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                () = sleep(options.intervals.store) => {}
            }
        }
    }
}

async fn open(api: &Api) -> Result<Socket, PlatformError> {
    let endpoint = api.open(TOPIC).await?;
    let address = address(&endpoint).ok_or_else(|| {
        PlatformError::Unavailable("DingTalk named an invalid endpoint".to_owned())
    })?;
    Ok(Socket::open(api.http(), &address, HeaderMap::new()).await?)
}

/// Returns the address of an endpoint with its ticket. It must use TLS or a loopback host.
fn address(endpoint: &Endpoint) -> Option<Url> {
    let key = "endpoint";
    let settings = Settings(
        [(key.to_owned(), endpoint.address.as_str().into())]
            .into_iter()
            .collect(),
    );
    let mut address = settings.base(PROVIDER, key, &endpoint.address).ok()?;
    address
        .query_pairs_mut()
        .append_pair("ticket", endpoint.ticket.expose_secret());
    Some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticket_is_form_escaped() {
        let endpoint = |address: &str| Endpoint {
            address: address.to_owned(),
            ticket: "a b+c".into(),
        };
        let url = address(&endpoint("wss://open.dingtalk.com:443/connect")).unwrap();
        assert_eq!(url.query(), Some("ticket=a+b%2Bc"));
        assert_eq!(address(&endpoint("ws://evil.example/connect")), None);
        assert_eq!(address(&endpoint("")), None);
    }
}

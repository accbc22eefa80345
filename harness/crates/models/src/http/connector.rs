//! Opens TCP and TLS connections to providers.

use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector};
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::ClientConfig;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use tower::ServiceExt;

use super::connection::{Connection, Socket};
use super::transport_error::{HttpUnavailable, TransportError};

/// Timeout of a connection attempt.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time without data after which TCP checks that the peer exists.
pub(super) const KEEPALIVE: Duration = Duration::from_secs(30);
/// Time between such checks.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// Number of such checks without a reply after which the connection fails.
const KEEPALIVE_RETRIES: u32 = 3;
/// Time after which a connection fails whose peer does not acknowledge data.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// Opens connections. TLS uses the process's cryptography, and verifies certificates as the operating
/// system does.
#[derive(Debug, Clone)]
pub(super) struct Connector(HttpsConnector<HttpConnector>);

impl Connector {
    pub(super) fn new() -> Result<Self, HttpUnavailable> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(KEEPALIVE));
        tcp.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
        tcp.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
        #[cfg(target_os = "linux")]
        tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
        // Does not choose the cryptography of an embedding program.
        let provider = CryptoProvider::get_default().cloned();
        let provider = provider.unwrap_or_else(|| Arc::new(aws_lc_rs::default_provider()));
        let mut tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(ConfigBuilderExt::try_with_platform_verifier)
            .map_err(|error| HttpUnavailable::new(&error))?
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(HttpsConnector::from((tcp, tls))))
    }

    /// Connects to a server, given by its scheme, host and port.
    pub(super) async fn connect(&self, server: &str) -> Result<Connection, TransportError> {
        let address: Uri = server
            .parse()
            .map_err(|error| TransportError::invalid(&error))?;
        let connecting = self.0.clone().oneshot(address);
        let socket: Socket = tokio::time::timeout(CONNECT_TIMEOUT, connecting)
            .await
            .map_err(|_| TransportError::connect_timeout(CONNECT_TIMEOUT))?
            .map_err(|error| TransportError::new(&*error))?;
        Connection::start(socket)
            .await
            .map_err(|error| TransportError::new(&error))
    }
}

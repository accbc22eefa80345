//! HTTP client of identity providers: no redirects, limited sizes and times.

use std::pin::Pin;
use std::time::Duration;

use harness::net::{Egress, Forbidden};
use openidconnect::{AsyncHttpClient, HttpRequest, HttpResponse};

/// Maximum size of an answer, in bytes.
const MAX_BODY: usize = 512 * 1024;
/// Timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of one request with its answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(9);

/// Reason why a request has no answer. Contains no address, which could have a secret.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    /// The address may not be called.
    #[error("the address may not be called: {0}")]
    Forbidden(#[from] Forbidden),
    /// The answer is too large.
    #[error("the answer is larger than {MAX_BODY} bytes")]
    TooLarge,
    /// The request failed.
    #[error("{0}")]
    Failed(#[from] reqwest::Error),
    /// The answer is not HTTP.
    #[error("the answer is not valid HTTP")]
    Malformed(#[from] http::Error),
}

/// HTTP client of identity providers.
#[derive(Debug, Clone)]
pub(super) struct ProviderHttp {
    client: reqwest::Client,
    egress: Egress,
}

impl ProviderHttp {
    /// Creates the client.
    pub(super) fn new() -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            .user_agent(concat!("deerflow/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(REQUEST_TIMEOUT)
            // A redirect would send codes and secrets to another host.
            .redirect(reqwest::redirect::Policy::none())
            .tcp_nodelay(true)
            .build()?;
        Ok(Self {
            client,
            // The operator chooses the providers, which may be in the private network.
            egress: Egress {
                allow_private: true,
                ..Egress::default()
            },
        })
    }

    /// Sends a request and reads its answer.
    pub(super) async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let url = self.egress.read(&request.uri().to_string())?;
        let (parts, body) = request.into_parts();
        let request = self.client.request(parts.method, url);
        let answer = request.headers(parts.headers).body(body).send().await;
        let mut answer = answer.map_err(reqwest::Error::without_url)?;
        if answer
            .content_length()
            .is_some_and(|length| length > MAX_BODY as u64)
        {
            return Err(HttpError::TooLarge);
        }
        let mut response = http::Response::builder().status(answer.status());
        if let Some(headers) = response.headers_mut() {
            headers.clone_from(answer.headers());
        }
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(reqwest::Error::without_url)? {
            if body.len() + chunk.len() > MAX_BODY {
                return Err(HttpError::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(response.body(body)?)
    }
}

impl<'c> AsyncHttpClient<'c> for ProviderHttp {
    type Error = HttpError;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.send(request))
    }
}

//! Loader of the documents that nodes name: files of the run's thread, and HTTP addresses of listed
//! hosts.

mod errors;
mod files;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
mod http_request;

use async_trait::async_trait;
use serde_json::Value;

use self::errors::no_hosts;
use super::adapter::FlowError;
use super::compiled::LoaderKind;
use super::driver::{DocumentLoader, LoadRequest, TextRequest};
use crate::sandbox::FileHome;

#[cfg(feature = "http")]
pub use http::{CurrentHosts, HttpLoader};

/// Loads documents of threads, and those of HTTP addresses if it has hosts.
#[derive(Debug)]
pub struct FlowLoader {
    files: FileHome,
    #[cfg(feature = "http")]
    http: Option<HttpLoader>,
}

impl FlowLoader {
    /// Creates a loader of these threads' files, without HTTP.
    pub fn new(files: FileHome) -> Self {
        Self {
            files,
            #[cfg(feature = "http")]
            http: None,
        }
    }

    /// Adds HTTP addresses.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn with_http(self, http: HttpLoader) -> Self {
        Self {
            http: Some(http),
            ..self
        }
    }

    #[cfg(feature = "http")]
    async fn fetch(&self, request: &LoadRequest<'_>) -> Result<Value, FlowError> {
        let http = self.http.as_ref().ok_or_else(no_hosts)?;
        http.load(request.config).await
    }

    #[cfg(not(feature = "http"))]
    async fn fetch(&self, _request: &LoadRequest<'_>) -> Result<Value, FlowError> {
        Err(no_hosts())
    }
}

#[async_trait]
impl DocumentLoader for FlowLoader {
    async fn load(&self, request: LoadRequest<'_>) -> Result<Option<Value>, FlowError> {
        match request.kind {
            LoaderKind::WorkDir | LoaderKind::LocalDir => files::load(&self.files, &request).await,
            LoaderKind::HttpAuth => self.fetch(&request).await.map(Some),
            LoaderKind::Input | LoaderKind::Custom => Ok(None),
        }
    }

    async fn read_text(&self, request: TextRequest<'_>) -> Result<String, FlowError> {
        files::read_text(&self.files, &request).await
    }
}

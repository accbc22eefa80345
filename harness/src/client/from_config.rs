//! Builders of a client, from a configuration or its file.

#[cfg(feature = "config-file")]
use std::path::Path;
use std::sync::Arc;

use super::builder::ClientBuilder;
use super::client::Client;
use crate::config::AppConfig;
#[cfg(all(feature = "config-file", feature = "mcp"))]
use crate::config::Variables;
#[cfg(feature = "config-file")]
use crate::config_file::{ConfigError, Environment, load_file};

impl Client {
    /// Returns a builder of a client with its own runtime.
    pub fn builder(config: impl Into<Arc<AppConfig>>) -> ClientBuilder {
        ClientBuilder::new(config)
    }

    /// Returns a builder with the configuration from a file, parsed as the server parses it;
    /// warnings about it are logged. `$NAME` references of MCP servers are resolved from this
    /// environment, too.
    ///
    /// # Errors
    /// The errors of [`load_file`](crate::config_file::load_file).
    #[cfg(feature = "config-file")]
    pub fn from_config_file(
        path: impl AsRef<Path>,
        environment: &Environment,
    ) -> Result<ClientBuilder, ConfigError> {
        let loaded = load_file(path.as_ref(), environment)?;
        loaded.log();
        let builder = Self::builder(loaded.config).read_from_file();
        #[cfg(feature = "mcp")]
        let builder = {
            let environment = environment.clone();
            builder.variables(Variables::new(move |name| {
                environment.get(name).map(str::to_owned)
            }))
        };
        Ok(builder)
    }
}

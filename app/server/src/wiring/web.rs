//! Creates the factory of web tools, with keys from the environment.

use harness::config_file::Environment;
use harness::tools::web::WebToolFactory;

/// Returns the factory of web tools; if it cannot be created, logs the error and returns `None`.
pub(super) fn factory(environment: &Environment) -> Option<WebToolFactory> {
    let variables = WebToolFactory::VARIABLES
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), environment.filled(name)?.to_owned())));
    match WebToolFactory::new(variables.collect()) {
        Ok(factory) => Some(factory),
        Err(error) => {
            tracing::error!(%error, "web tools are disabled: cannot create an HTTP client");
            None
        }
    }
}

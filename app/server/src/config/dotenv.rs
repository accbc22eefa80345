//! Environment of the process, completed by the project's `.env`.

use std::path::Path;

use harness::config_file::{ConfigError, Environment};

/// Exports the project's `.env` into this process, then takes a snapshot of the environment.
///
/// Must be called before any thread starts. Variables that are already set take precedence over the
/// file.
pub fn environment() -> Result<Environment, ConfigError> {
    let bare = Environment::from_process()?;
    match bare.dotenv_file() {
        None => Ok(bare),
        Some(path) => {
            export(&path)?;
            Environment::from_process()
        }
    }
}

fn export(path: &Path) -> Result<(), ConfigError> {
    dotenvy::from_path(path).map_err(|error| ConfigError::Dotenv {
        path: path.to_owned(),
        message: match error {
            // The parser's message quotes the line, which may contain a secret.
            dotenvy::Error::LineParse(..) => "a line is not of the form NAME=value".to_owned(),
            dotenvy::Error::Io(error) => error.to_string(),
            _ => "cannot be read".to_owned(),
        },
    })
}

//! Migrates the store that older files configure under `checkpointer` to `database`.

use std::path::Path;

use crate::config::{AppConfig, DatabaseBackend};
use secrecy::SecretString;

use super::document::{Content, Node};
use super::error::{Origin, Warning};

/// Uses a Postgres server under `checkpointer` as the database unless the configuration already has
/// one. Returns a warning if the setting is used or has no effect.
pub(super) fn adopt(
    config: &mut AppConfig,
    root: &Node,
    path: &Path,
    has_database: bool,
) -> Option<Warning> {
    let text = |key: &str| match root.follow(&["checkpointer", key]) {
        (
            Node {
                content: Content::Text { text, .. },
                ..
            },
            true,
        ) if !text.is_empty() => Some(text.clone()),
        _ => None,
    };
    if text("type").is_none_or(|kind| kind != "postgres")
        || config.database.backend == DatabaseBackend::Postgres
    {
        return None;
    }
    let message = match text("connection_string").filter(|_| !has_database) {
        Some(url) => {
            config.database.backend = DatabaseBackend::Postgres;
            config.database.postgres_url = Some(SecretString::from(url));
            config.database.postgres_schema = text("postgres_schema").unwrap_or_default();
            "is used as `database`, which the file lacks: all durable data is stored there"
        }
        None => "has no effect: `database` determines where the states of threads are stored",
    };
    let location = root.follow(&["checkpointer", "type"]).0.place;
    let origin = Origin::File {
        path: path.to_owned(),
        place: location,
    };
    Some(Warning {
        origin,
        key: "checkpointer.type".to_owned(),
        message: message.to_owned(),
    })
}

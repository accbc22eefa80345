//! The store that an older file names under `checkpointer`, where newer ones have `database`.

use std::path::Path;

use crate::config::{AppConfig, DatabaseBackend};
use secrecy::SecretString;

use super::document::{Content, Node};
use super::error::{Origin, Warning};

/// Takes a Postgres server under `checkpointer` for the database of a file that names none. What there is to say about it.
pub(super) fn adopt(
    config: &mut AppConfig,
    root: &Node,
    path: &Path,
    names_another: bool,
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
    let message = match text("connection_string").filter(|_| !names_another) {
        Some(url) => {
            config.database.backend = DatabaseBackend::Postgres;
            config.database.postgres_url = Some(SecretString::from(url));
            config.database.postgres_schema = text("postgres_schema").unwrap_or_default();
            "is taken for `database`, which the file lacks: everything durable is kept there"
        }
        None => "has no effect: the states of threads are kept where `database` says",
    };
    let place = root.follow(&["checkpointer", "type"]).0.place;
    let origin = Origin::File {
        path: path.to_owned(),
        place,
    };
    Some(Warning {
        origin,
        key: "checkpointer.type".to_owned(),
        message: message.to_owned(),
    })
}

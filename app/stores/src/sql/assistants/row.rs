//! Conversion between an assistant and its rows.

use deerflow_domain::assistants::{Assistant, AssistantContent, AssistantVersion, NewAssistant};
use sea_orm::DbErr;
use uuid::Uuid;

use crate::db::entity::{assistant, assistant_version, micros, moment, plain};
use crate::db::json::{from_json, json_text};

pub(super) fn new_row(new: &NewAssistant) -> assistant::Model {
    let mut row = assistant::Model {
        assistant_id: new.id.to_string(),
        user_id: new.user_id.clone(),
        version: 1,
        graph_id: String::new(),
        name: String::new(),
        description: None,
        config_json: String::new(),
        context_json: String::new(),
        metadata_json: String::new(),
        created_at: micros(new.at),
        updated_at: micros(new.at),
    };
    write_content(&mut row, &new.content);
    row
}

/// Copies a version's content to the row of its assistant.
pub(super) fn write_content(row: &mut assistant::Model, content: &AssistantContent) {
    row.graph_id = plain(&content.graph);
    row.name = plain(&content.name);
    row.description = content.description.as_deref().map(plain);
    row.config_json = json_text(&content.config);
    row.context_json = json_text(&content.context);
    row.metadata_json = json_text(&content.metadata);
}

/// Returns the version row of the assistant's current content.
pub(super) fn version_row(row: &assistant::Model) -> assistant_version::Model {
    assistant_version::Model {
        assistant_id: row.assistant_id.clone(),
        version: row.version,
        graph_id: row.graph_id.clone(),
        name: row.name.clone(),
        description: row.description.clone(),
        config_json: row.config_json.clone(),
        context_json: row.context_json.clone(),
        metadata_json: row.metadata_json.clone(),
        created_at: row.updated_at,
    }
}

/// Reads a row. The error of an unreadable one names the assistant.
pub(super) fn record(row: assistant::Model) -> Result<Assistant, DbErr> {
    let (user_id, created_at) = (row.user_id.clone(), moment(row.created_at));
    let version = version(version_row(&row))?;
    Ok(Assistant {
        id: version.id,
        user_id,
        version: version.version,
        content: version.content,
        created_at,
        updated_at: version.created_at,
    })
}

/// Reads a version's row.
pub(super) fn version(row: assistant_version::Model) -> Result<AssistantVersion, DbErr> {
    let read = || -> Result<AssistantVersion, String> {
        Ok(AssistantVersion {
            id: Uuid::parse_str(&row.assistant_id).map_err(|error| error.to_string())?,
            version: u32::try_from(row.version).map_err(|error| error.to_string())?,
            content: AssistantContent {
                graph: row.graph_id.clone(),
                name: row.name.clone(),
                description: row.description.clone(),
                config: from_json(&row.config_json)?,
                context: from_json(&row.context_json)?,
                metadata: from_json(&row.metadata_json)?,
            },
            created_at: moment(row.created_at),
        })
    };
    read().map_err(|reason| {
        DbErr::Type(format!(
            "assistant {} is damaged: {reason}",
            row.assistant_id
        ))
    })
}

/// Returns `None` for an unreadable row, so that it does not hide the others in a list.
pub(super) fn readable<T>(result: Result<T, DbErr>) -> Option<T> {
    result
        .inspect_err(
            |error| tracing::error!(%error, "an assistant is damaged, omitted from a list"),
        )
        .ok()
}

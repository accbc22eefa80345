//! `POST /flows/import`: the flows of an archive.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequest, Request, State};
use axum::http::StatusCode;
use bytes::Bytes;
use deerflow_domain::flows::{
    Expected, FlowWrite, MAX_ASSETS, MAX_ASSETS_BYTES, MAX_TEXT_BYTES, is_slug,
};
use harness::runtime::actor_context::effective_user_id;
use harness::runtime::compute::{Size, heavy_poll};
use harness::skills::archive::text_files;
use serde_json::{Value, json};

use super::body::media_type;
use super::errors::{findings_of_file, refused_archive};
use super::json::record_json;
use super::save::{require_free_slug, save};
use crate::error::ApiError;
use crate::extract::{Query, receive};
use crate::flows::{
    FlowOwner, FlowRules, FoundFlow, ProjectFile, files_of_archive, flows_of_project,
    is_project_file,
};
use crate::routes::App;
use crate::state::GatewayState;

/// Maximum size of an archive, in bytes.
const MAX_ARCHIVE_BYTES: usize = 20 << 20;
/// Media types of an archive.
const ARCHIVE_TYPES: [&str; 4] = [
    "application/zip",
    "application/x-zip-compressed",
    "application/octet-stream",
    "",
];

/// An archive in a body.
#[derive(Debug)]
pub(crate) struct Archive(Bytes);

impl FromRequest<Arc<GatewayState>> for Archive {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &Arc<GatewayState>) -> Result<Self, ApiError> {
        let kind = media_type(request.headers());
        if !ARCHIVE_TYPES.contains(&kind.as_str()) {
            return Err(ApiError::UnsupportedFile(format!(
                "An archive is sent as application/zip, not as {kind}"
            )));
        }
        Ok(Self(receive(request, MAX_ARCHIVE_BYTES).await?))
    }
}

/// Imports all flows of an archive, or none. With `replace`, they may be new versions.
pub(crate) async fn import(
    State(state): App,
    query: Query,
    Archive(bytes): Archive,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let replace = query.flag("replace")?.unwrap_or(false);
    state.observability.health.require_space()?;
    let user = effective_user_id();
    heavy_poll(Size::bytes(MAX_ARCHIVE_BYTES)).await;
    let found = flows_of_archive(bytes)?;
    let writes = checked_writes(state.agent_services.flows.rules(), found, replace)?;
    for write in &writes {
        require_free_slug(&state, &user, &write.slug).await?;
    }
    let records = save(&state, &user, writes).await?;
    let flows: Vec<Value> = records
        .iter()
        .map(|record| record_json(FlowOwner::User, record))
        .collect();
    Ok((StatusCode::CREATED, Json(json!(flows))))
}

/// Reads the flows of an archive.
fn flows_of_archive(bytes: Bytes) -> Result<Vec<FoundFlow>, ApiError> {
    let inner = |path: &str| path.split_once('/').map(|(_, inner)| inner.to_owned());
    let is_wanted = |path: &str| {
        is_project_file(path) || inner(path).is_some_and(|inner| is_project_file(&inner))
    };
    let files = text_files(Cursor::new(bytes), MAX_ARCHIVE_BYTES as u64, is_wanted)
        .map_err(|error| refused_archive(&error))?;
    let files = files.into_iter().map(|file| ProjectFile {
        path: file.path,
        text: file.text,
    });
    let found = flows_of_project(files_of_archive(files.collect()));
    if found.is_empty() {
        return Err(ApiError::Unprocessable(
            "The archive contains no flow: a YAML or JSON file with `meta` and `graph`".to_owned(),
        ));
    }
    Ok(found)
}

/// Validates the flows of an archive. The error has the findings of all flows.
fn checked_writes(
    rules: &FlowRules,
    found: Vec<FoundFlow>,
    replace: bool,
) -> Result<Vec<FlowWrite>, ApiError> {
    let (mut writes, mut findings, mut slugs) = (Vec::new(), Vec::new(), BTreeSet::new());
    let expected = if replace {
        Expected::Any
    } else {
        Expected::Absent
    };
    for FoundFlow {
        path,
        slug,
        content,
    } in found
    {
        let problem = |message: &str| {
            vec![json!({ "code": "schema_invalid", "message": message, "file": path })]
        };
        let Some(slug) = slug.filter(|slug| is_slug(slug)) else {
            findings.extend(problem("the file name has no letter or digit of ASCII"));
            continue;
        };
        if !slugs.insert(slug.clone()) {
            findings.extend(problem("another file gives the same id"));
        }
        if content.text.len() > MAX_TEXT_BYTES {
            return Err(ApiError::TooLarge(MAX_TEXT_BYTES as u64));
        }
        let checked = rules.check(content);
        let Some((content, summary)) = checked.checked else {
            findings.extend(findings_of_file(&checked.validation.errors, &path));
            continue;
        };
        let bytes: usize = content.assets.iter().map(|asset| asset.text.len()).sum();
        if content.assets.len() > MAX_ASSETS || bytes > MAX_ASSETS_BYTES {
            return Err(ApiError::FileTooLarge(format!(
                "{path} uses more than {MAX_ASSETS} assets or {MAX_ASSETS_BYTES} bytes of them"
            )));
        }
        writes.push(FlowWrite {
            slug,
            expected: expected.clone(),
            content,
            summary,
        });
    }
    if findings.is_empty() {
        Ok(writes)
    } else {
        Err(ApiError::InvalidAssistant(findings))
    }
}

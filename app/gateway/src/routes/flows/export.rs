//! `GET /flows/{id}/export`: a flow with its assets as an archive.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::IntoResponse;
use deerflow_flow::schema::Document;
use harness::runtime::compute::heavy_poll;
use harness::skills::archive::{TextFile, pack};

use super::conditions::etag;
use super::errors::invalid;
use super::read::requested;
use super::redact::redacted;
use crate::extract::{Ids, Query};
use crate::flows::FlowRules;
use crate::routes::ResponseResult;
use crate::state::AgentServices;

/// Header with the places of the secrets that the archive lacks, as JSON pointers.
const REMOVED: HeaderName = HeaderName::from_static("x-flow-secrets-removed");

/// Returns an archive that imports again. Secrets are replaced by references.
pub(crate) async fn export(
    State(agents): State<AgentServices>,
    ids: Ids,
    query: Query,
) -> ResponseResult {
    let flow = requested(&agents, &ids, &query).await?;
    heavy_poll(FlowRules::size(&flow.content)).await;
    let document =
        Document::read(&flow.content.text).map_err(|validation| invalid(&validation.errors))?;
    let rules = agents.flows.rules();
    let validation = rules.validate(&document, &flow.content.assets, true, false);
    let (text, removed) = redacted(&document, &validation);
    let is_json = text
        .trim_start_matches('\u{feff}')
        .trim_start()
        .starts_with('{');
    let ending = if is_json { "json" } else { "yaml" };
    let document = TextFile {
        path: format!("{}.{ending}", flow.slug),
        text,
    };
    let assets = flow.content.assets.iter().map(|asset| TextFile {
        path: asset.path.clone(),
        text: asset.text.clone(),
    });
    let files: Vec<TextFile> = std::iter::once(document).chain(assets).collect();
    let archive = pack(&files)?;
    let name = format!("attachment; filename=\"{}.zip\"", flow.slug);
    let mut headers: HeaderMap = HeaderMap::from_iter([
        etag(&flow.content_hash),
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/zip"),
        ),
    ]);
    headers.extend(HeaderValue::from_str(&name).map(|name| (header::CONTENT_DISPOSITION, name)));
    if !removed.is_empty() {
        headers.extend(HeaderValue::from_str(&removed.join(" ")).map(|list| (REMOVED, list)));
    }
    Ok((headers, archive).into_response())
}

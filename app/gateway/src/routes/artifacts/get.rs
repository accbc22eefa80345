//! `GET`: a file's bytes, whole or a range of them.

use std::fs::Metadata;
use std::io;
use std::time::SystemTime;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use harness::runtime::actor_context::effective_user_id;
use tokio::fs::File;
use tokio::io::AsyncReadExt;

use super::body::file_body;
use super::hash::hash;
use super::kind::{Kind, disposition};
use super::path::{refused, virtual_path};
use super::range::{Wanted, wanted};
use crate::error::ApiError;
use crate::extract::{Ids, Query};
use crate::reads::require_thread;
use crate::routes::{App, Reply};

/// Files up to this size are tagged with the hash of their content, which the editor checks before it saves.
const HASHED_UP_TO: u64 = 2 * 1024 * 1024;

pub(crate) async fn get(State(state): App, ids: Ids, query: Query, headers: HeaderMap) -> Reply {
    let thread = ids.thread()?;
    let download = query.flag("download")?.unwrap_or_default();
    let path = virtual_path(ids.text("path"))?;
    require_thread(&state, &thread).await?;
    let files = state.files.thread(&effective_user_id(), &thread);
    let (file, facts) = files.open_read(&path).await.map_err(|error| refused(error, &path))?;
    let mut file = File::from_std(file);
    let length = facts.len();
    let small = if length <= HASHED_UP_TO { Some(read_all(&mut file, length).await.map_err(broken)?) } else { None };
    let tag = match &small {
        Some(content) => format!("\"{}\"", hash(content)),
        None => modification_tag(&facts),
    };
    // A hashed file may have changed between its facts and its content: the content counts.
    let length = small.as_ref().map_or(length, |content| content.len() as u64);
    let mut answer = match headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => match wanted(range(&headers, &tag), length) {
            Wanted::Unsatisfiable => unsatisfiable(length),
            part => send(part, length, file, small).await.map_err(broken)?,
        },
    };
    let about = about(path.file_name(), download, &tag, &facts);
    answer.headers_mut().extend(about);
    Ok(answer)
}

/// The range that is asked for, unless it is a part of what the file no longer is.
fn range<'a>(headers: &'a HeaderMap, tag: &str) -> Option<&'a str> {
    let current = headers.get(header::IF_RANGE).is_none_or(|known| known.as_bytes() == tag.as_bytes());
    headers.get(header::RANGE).filter(|_| current)?.to_str().ok()
}

fn broken(error: io::Error) -> ApiError {
    ApiError::Internal(format!("a file could not be read: {error}"))
}

async fn read_all(file: &mut File, length: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    // A file that grows while it is read is cut at the limit, not followed.
    file.take(HASHED_UP_TO).read_to_end(&mut content).await?;
    Ok(content)
}

async fn send(part: Wanted, length: u64, file: File, small: Option<Vec<u8>>) -> io::Result<Response> {
    let (first, count, status) = match part {
        Wanted::Part(first, last) => (first, last - first + 1, StatusCode::PARTIAL_CONTENT),
        _ => (0, length, StatusCode::OK),
    };
    let body = match small {
        Some(content) => {
            let (first, end) = (usize::try_from(first).unwrap_or_default(), usize::try_from(first + count).unwrap_or_default());
            Body::from(bytes::Bytes::from(content).slice(first..end))
        }
        None => file_body(file, first, count).await?,
    };
    let mut response = (status, [(header::CONTENT_LENGTH, HeaderValue::from(count))], body).into_response();
    if status == StatusCode::PARTIAL_CONTENT {
        let range = format!("bytes {first}-{}/{length}", first + count - 1);
        response.headers_mut().insert(header::CONTENT_RANGE, text(&range));
    }
    Ok(response)
}

fn unsatisfiable(length: u64) -> Response {
    (StatusCode::RANGE_NOT_SATISFIABLE, [(header::CONTENT_RANGE, text(&format!("bytes */{length}")))]).into_response()
}

/// Headers about the file. The last three keep a browser from running anything in it, whatever its name says.
fn about(name: &str, download: bool, tag: &str, facts: &Metadata) -> HeaderMap {
    let kind = Kind::of(name);
    let modified: DateTime<Utc> = facts.modified().unwrap_or(SystemTime::UNIX_EPOCH).into();
    HeaderMap::from_iter([
        (header::CONTENT_TYPE, text(&kind.media_type)),
        (header::CONTENT_DISPOSITION, disposition(download || kind.active, name)),
        (header::ACCEPT_RANGES, HeaderValue::from_static("bytes")),
        (header::ETAG, text(tag)),
        (header::LAST_MODIFIED, text(&modified.format("%a, %d %b %Y %H:%M:%S GMT").to_string())),
        (header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'")),
        (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    ])
}

fn modification_tag(facts: &Metadata) -> String {
    let since = facts.modified().ok().and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok()).unwrap_or_default();
    format!("\"{:x}-{:x}\"", since.as_nanos(), facts.len())
}

fn text(value: &str) -> HeaderValue {
    HeaderValue::from_str(value).unwrap_or_else(|_| HeaderValue::from_static(""))
}

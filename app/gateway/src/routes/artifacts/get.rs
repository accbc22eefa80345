//! `GET`: the bytes of a file, or of one in a `.skill` archive, whole or a range of them.

use std::fs::Metadata;
use std::io;
use std::time::SystemTime;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use harness::artifacts::{Artifact, ArtifactContent, FileKind, artifact_path};
use harness::runtime::actor_context::effective_user_id;
use tokio::fs::File;
use tokio::io::AsyncReadExt;

use super::body::file_body;
use super::disposition::disposition;
use super::hash::hash;
use super::policy::content_policy;
use super::range::{Wanted, wanted};
use super::tag::is_known;
use crate::error::ApiError;
use crate::extract::{Ids, Query};
use crate::reads::require_thread;
use crate::routes::{App, Reply};

/// Files up to this size are tagged with the hash of their content, which the editor checks before it saves.
const HASHED_UP_TO: u64 = 2 * 1024 * 1024;

/// Browsers keep what is shown of an archive for so long.
const MEMBER_CACHE: &str = "private, max-age=300";
const FILE_CACHE: &str = "private, no-cache";

const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

pub(crate) async fn get(State(state): App, ids: Ids, query: Query, headers: HeaderMap) -> Reply {
    let thread = ids.thread()?;
    let download = query.flag("download")?.unwrap_or_default();
    let path = artifact_path(ids.text("path"))?;
    require_thread(&state, &thread).await?;
    let files = state.files.thread(&effective_user_id(), &thread);
    let Artifact { content, facts } = Artifact::open(&files, &path).await?;
    let found = match content {
        ArtifactContent::File(file) => Found::file(file, facts).await.map_err(broken)?,
        ArtifactContent::Member(content) => Found::member(content, facts),
    };
    let mut answer = found
        .answer(path.file_name(), download, &headers)
        .await
        .map_err(broken)?;
    if state.visitors.has_origins() {
        // A page of a configured origin shows images from here, and browsers ask for those without naming it.
        answer
            .headers_mut()
            .insert(RESOURCE_POLICY, HeaderValue::from_static("same-site"));
    }
    Ok(answer)
}

/// What is sent.
struct Found {
    content: Content,
    tag: String,
    cache: &'static str,
    facts: Metadata,
}

enum Content {
    Whole(Vec<u8>),
    File(File, u64),
}

impl Found {
    async fn file(file: std::fs::File, facts: Metadata) -> io::Result<Self> {
        let (mut file, length, cache) = (File::from_std(file), facts.len(), FILE_CACHE);
        if length > HASHED_UP_TO {
            return Ok(Self {
                tag: modification_tag(&facts),
                content: Content::File(file, length),
                cache,
                facts,
            });
        }
        // It may have changed between its facts and its content: the content counts.
        let content = read_all(&mut file, length).await?;
        Ok(Self {
            tag: content_tag(&content),
            content: Content::Whole(content),
            cache,
            facts,
        })
    }

    fn member(content: Vec<u8>, facts: Metadata) -> Self {
        Self {
            tag: content_tag(&content),
            content: Content::Whole(content),
            cache: MEMBER_CACHE,
            facts,
        }
    }

    async fn answer(self, name: &str, download: bool, headers: &HeaderMap) -> io::Result<Response> {
        let Self {
            content,
            tag,
            cache,
            facts,
        } = self;
        let length = match &content {
            Content::Whole(content) => content.len() as u64,
            Content::File(_, length) => *length,
        };
        let mut answer = match is_known(headers, &tag) {
            true => StatusCode::NOT_MODIFIED.into_response(),
            false => match wanted(range(headers, &tag), length) {
                Wanted::Unsatisfiable => unsatisfiable(length),
                part => send(part, length, content).await?,
            },
        };
        answer
            .headers_mut()
            .extend(about(name, download, &tag, cache, &facts));
        Ok(answer)
    }
}

/// The range that is asked for, unless it is a part of what the file no longer is.
fn range<'a>(headers: &'a HeaderMap, tag: &str) -> Option<&'a str> {
    let current = headers
        .get(header::IF_RANGE)
        .is_none_or(|known| known.as_bytes() == tag.as_bytes());
    headers
        .get(header::RANGE)
        .filter(|_| current)?
        .to_str()
        .ok()
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

async fn send(part: Wanted, length: u64, content: Content) -> io::Result<Response> {
    let (first, count, status) = match part {
        Wanted::Part(first, last) => (first, last - first + 1, StatusCode::PARTIAL_CONTENT),
        _ => (0, length, StatusCode::OK),
    };
    let body = match content {
        Content::Whole(content) => {
            let (first, end) = (
                usize::try_from(first).unwrap_or_default(),
                usize::try_from(first + count).unwrap_or_default(),
            );
            Body::from(bytes::Bytes::from(content).slice(first..end))
        }
        Content::File(file, _) => file_body(file, first, count).await?,
    };
    let mut response = (
        status,
        [(header::CONTENT_LENGTH, HeaderValue::from(count))],
        body,
    )
        .into_response();
    if status == StatusCode::PARTIAL_CONTENT {
        let range = format!("bytes {first}-{}/{length}", first + count - 1);
        response
            .headers_mut()
            .insert(header::CONTENT_RANGE, text(&range));
    }
    Ok(response)
}

fn unsatisfiable(length: u64) -> Response {
    (
        StatusCode::RANGE_NOT_SATISFIABLE,
        [(header::CONTENT_RANGE, text(&format!("bytes */{length}")))],
    )
        .into_response()
}

/// Headers about the file. The last three keep a browser from running anything in it, whatever its name says.
fn about(
    name: &str,
    download: bool,
    tag: &str,
    cache: &'static str,
    facts: &Metadata,
) -> HeaderMap {
    let kind = FileKind::of(name);
    let modified: DateTime<Utc> = facts.modified().unwrap_or(SystemTime::UNIX_EPOCH).into();
    HeaderMap::from_iter([
        (header::CONTENT_TYPE, text(&kind.media_type)),
        (
            header::CONTENT_DISPOSITION,
            disposition(download || kind.active, name),
        ),
        (header::ACCEPT_RANGES, HeaderValue::from_static("bytes")),
        (header::ETAG, text(tag)),
        (
            header::LAST_MODIFIED,
            text(&modified.format("%a, %d %b %Y %H:%M:%S GMT").to_string()),
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static(cache)),
        (
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ),
        (
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(content_policy(&kind)),
        ),
        (RESOURCE_POLICY, HeaderValue::from_static("same-origin")),
    ])
}

fn content_tag(content: &[u8]) -> String {
    format!("\"{}\"", hash(content))
}

fn modification_tag(facts: &Metadata) -> String {
    let since = facts
        .modified()
        .ok()
        .and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok())
        .unwrap_or_default();
    format!("\"{:x}-{:x}\"", since.as_nanos(), facts.len())
}

fn text(value: &str) -> HeaderValue {
    HeaderValue::from_str(value).unwrap_or_else(|_| HeaderValue::from_static(""))
}

//! `GET`: a file, or a member of a `.skill` archive, whole or as a range. Uploads of the caller are
//! readable before their thread exists: the web UI shows them while it starts the first run.

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
use harness::sandbox::Root;
use tokio::fs::File;
use tokio::io::AsyncReadExt;

use super::body::file_body;
use super::disposition::disposition;
use super::hash::hash;
use super::policy::content_policy;
use super::range::{ByteRange, parse_range};
use super::tag::matches_tag;
use crate::error::ApiError;
use crate::extract::{Ids, Query};
use crate::queries::threads::require_thread;
use crate::routes::{App, ResponseResult};

/// Maximum size of files whose entity tag is the hash of their content, which the editor checks
/// before it saves.
const MAX_HASHED_BYTES: u64 = 2 * 1024 * 1024;

/// Cache policy for members of archives.
const MEMBER_CACHE: &str = "private, max-age=300";
const FILE_CACHE: &str = "private, no-cache";

const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

pub(crate) async fn get(
    State(state): App,
    ids: Ids,
    query: Query,
    headers: HeaderMap,
) -> ResponseResult {
    let thread = ids.thread()?;
    let download = query.flag("download")?.unwrap_or_default();
    let path = artifact_path(ids.text("path"))?;
    if path.root() != Root::Uploads {
        require_thread(&state, &thread).await?;
    }
    let files = state
        .thread_services
        .files
        .thread(&effective_user_id(), &thread);
    let Artifact { content, facts } = Artifact::open(&files, &path).await?;
    let artifact = match content {
        ArtifactContent::File(file) => ArtifactFile::file(file, facts).await.map_err(read_error)?,
        ArtifactContent::Member(content) => ArtifactFile::member(content, facts),
    };
    let mut response = artifact
        .response(path.file_name(), download, &headers)
        .await
        .map_err(read_error)?;
    if state.security.origin_policy.has_origins() {
        // A page of a configured origin shows images from here, and browsers request them without
        // an `Origin` header.
        response
            .headers_mut()
            .insert(RESOURCE_POLICY, HeaderValue::from_static("same-site"));
    }
    Ok(response)
}

/// Content and metadata of the response.
struct ArtifactFile {
    content: Content,
    tag: String,
    cache: &'static str,
    facts: Metadata,
}

enum Content {
    Whole(Vec<u8>),
    File(File, u64),
}

impl ArtifactFile {
    async fn file(file: std::fs::File, facts: Metadata) -> io::Result<Self> {
        let (mut file, length, cache) = (File::from_std(file), facts.len(), FILE_CACHE);
        if length > MAX_HASHED_BYTES {
            return Ok(Self {
                tag: modification_tag(&facts),
                content: Content::File(file, length),
                cache,
                facts,
            });
        }
        // The file may have changed since its metadata was read, so tag and length are those of the
        // content.
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

    async fn response(
        self,
        name: &str,
        download: bool,
        headers: &HeaderMap,
    ) -> io::Result<Response> {
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
        let mut response = match matches_tag(headers, &tag) {
            true => StatusCode::NOT_MODIFIED.into_response(),
            false => match parse_range(range(headers, &tag), length) {
                ByteRange::Unsatisfiable => unsatisfiable(length),
                part => send(part, length, content).await?,
            },
        };
        response
            .headers_mut()
            .extend(add_headers(name, download, &tag, cache, &facts));
        Ok(response)
    }
}

/// Returns the requested range, unless `If-Range` names an older version of the file.
fn range<'a>(headers: &'a HeaderMap, tag: &str) -> Option<&'a str> {
    let current = headers
        .get(header::IF_RANGE)
        .is_none_or(|allowed| allowed.as_bytes() == tag.as_bytes());
    headers
        .get(header::RANGE)
        .filter(|_| current)?
        .to_str()
        .ok()
}

fn read_error(error: io::Error) -> ApiError {
    ApiError::Internal(format!("failed to read a file: {error}"))
}

async fn read_all(file: &mut File, length: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    // A file that grows while it is read is truncated at the limit.
    file.take(MAX_HASHED_BYTES)
        .read_to_end(&mut content)
        .await?;
    Ok(content)
}

async fn send(part: ByteRange, length: u64, content: Content) -> io::Result<Response> {
    let (first, count, status) = match part {
        ByteRange::Part(first, last) => (first, last - first + 1, StatusCode::PARTIAL_CONTENT),
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

/// Returns the headers about the file. The last three keep a browser from running any of its
/// content.
fn add_headers(
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

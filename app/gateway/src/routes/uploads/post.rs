//! `POST`: files as parts of a form, written while they come. Either all of them appear or none: whatever may fail is done before
//! the first appears, and only a broken disk or the end of the process can come between that and the last.

use axum::Json;
use axum::extract::multipart::MultipartError;
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, Request, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use harness::runtime::actor_context::effective_user_id;
use harness::runtime::runs::store::Made;
use harness::sandbox::pending_file::Durability;
use harness::sandbox::{Fault, FileError, IncomingFile, ThreadFiles, VirtualPath};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::file_json;
use super::markdown::{self, Plan};
use super::name::{Names, place_of};
use crate::error::{ApiError, Issue};
use crate::extract::{BODY_TIMEOUT, Ids};
use crate::ports::UploadLimits;
use crate::repeats::{Repeatable, made_before, made_of, replayed};
use crate::routes::{App, Reply};

/// What boundaries and headers of parts may add to the files, in bytes.
const FORM_OVERHEAD: u64 = 1024 * 1024;

pub(crate) async fn post(State(state): App, ids: Ids, asked: Repeatable, mut request: Request) -> Reply {
    let thread = ids.thread()?;
    let limits = state.info.uploads();
    let most = usize::try_from(limits.max_total_size.saturating_add(FORM_OVERHEAD)).unwrap_or(usize::MAX);
    DefaultBodyLimit::max(most).apply(&mut request);
    let form = Multipart::from_request(request, &()).await.map_err(|_| no_files_field())?;
    let user = effective_user_id();
    let place = state.files.thread(&user, &thread);
    let mut batch = Batch::receive(form, &place, &limits, asked.is_named()).await?;
    let key = asked.with_digest(&state, batch.digest);
    if let Some(before) = made_before(&state, key.as_ref()).await? {
        return again(before);
    }
    let reader = state.info.documents();
    let (mut files, mut plans, mut settled): (Vec<Value>, Vec<_>, Vec<_>) = Default::default();
    for (incoming, came_as) in batch.incoming {
        settled.push((incoming.settle().await?, came_as));
    }
    for (incoming, _) in &settled {
        // What was made of the document before this one says nothing of it.
        markdown::remove_of(&place, incoming.path()).await?;
    }
    for (incoming, came_as) in settled {
        let path = incoming.path().clone();
        plans.push(reader.as_ref().and_then(|_| Plan::of(&path, &mut batch.names)));
        let mut file = file_json(&thread, &path, incoming.finish(Durability::Synced).await?);
        if path.file_name() != came_as {
            file["original_filename"] = came_as.into();
        }
        files.push(file);
    }
    if let Some(reader) = &reader {
        for (file, markdown) in files.iter_mut().zip(markdown::carry_out(&plans, &**reader, &user, &place).await) {
            markdown.into_iter().for_each(|markdown| markdown::show(file, &thread, markdown));
        }
    }
    let answer = json!({
        "success": !files.is_empty(),
        "message": format!("Successfully uploaded {} file(s)", files.len()),
        "files": files,
        "skipped_files": batch.skipped,
    });
    // Files are no rows: should this be lost, the same files are written once more in their places.
    if let Some(key) = &key
        && let Some(known) = state.requests.keep(key, Made::Answer(answer.clone()), state.clock.now()).await?
    {
        return again(made_of(known)?);
    }
    Ok(Json(answer).into_response())
}

/// The answer of the time when the same files came first.
fn again(made: Made) -> Reply {
    match made {
        Made::Answer(answer) => Ok(replayed(Json(answer).into_response())),
        other => Err(ApiError::Internal(format!("an upload is known to have made {other:?}"))),
    }
}

/// The files of a request before they appear; dropped, they leave nothing behind.
#[derive(Default)]
struct Batch {
    /// Each with the name it came with.
    incoming: Vec<(IncomingFile, String)>,
    /// Names that cannot be kept.
    skipped: Vec<String>,
    names: Names,
    bytes: u64,
    /// Of the names as they came, and of the contents if the request has a name.
    digest: Sha256,
}

impl Batch {
    async fn receive(mut form: Multipart, files: &ThreadFiles, limits: &UploadLimits, named: bool) -> Result<Self, ApiError> {
        let mut batch = Self::default();
        let (mut field_seen, mut count) = (false, 0_u32);
        while let Some(mut field) = in_time(form.next_field()).await? {
            if field.name() != Some("files") {
                continue;
            }
            field_seen = true;
            let raw = field.file_name().unwrap_or_default().to_owned();
            if raw.is_empty() {
                continue;
            }
            batch.digest.update(Sha256::digest(&raw));
            count += 1;
            if count > limits.max_files {
                return Err(ApiError::FileTooLarge(format!("Too many files: maximum is {}", limits.max_files)));
            }
            let Some((mut file, came_as)) = batch.begin(&raw, files).await? else {
                batch.skipped.push(raw.chars().take(255).collect());
                continue;
            };
            let mut content = Sha256::new();
            while let Some(piece) = in_time(field.chunk()).await? {
                if named {
                    content.update(&piece);
                }
                batch.bytes += piece.len() as u64;
                if file.written() + piece.len() as u64 > limits.max_file_size {
                    return Err(ApiError::FileTooLarge(format!("File too large: {came_as}")));
                }
                if batch.bytes > limits.max_total_size {
                    return Err(too_much());
                }
                file = file.write(piece).await?;
            }
            batch.digest.update(content.finalize());
            batch.incoming.push((file, came_as));
        }
        match (field_seen, count) {
            (false, _) => Err(no_files_field()),
            (true, 0) => Err(ApiError::BadRequest("No files provided".to_owned())),
            _ => Ok(batch),
        }
    }

    /// Begins a file; `None` when its name cannot be used or something else has it.
    async fn begin(&mut self, raw: &str, files: &ThreadFiles) -> Result<Option<(IncomingFile, String)>, ApiError> {
        let Some(wanted) = place_of(raw) else { return Ok(None) };
        let came_as = wanted.file_name().to_owned();
        let Some(place) = self.names.claim(wanted) else { return Ok(None) };
        match files.begin_write(&place).await {
            Ok(file) => Ok(Some((file, came_as))),
            Err(error) if is_occupied(&error, &place) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether the place holds what an upload must not replace: a link, a directory, a file with a second name.
fn is_occupied(error: &FileError, place: &VirtualPath) -> bool {
    let occupied =
        matches!(error.fault(), Some(Fault::Symlink | Fault::HardLinked | Fault::IsDirectory | Fault::NotRegular | Fault::Permission));
    if occupied {
        tracing::warn!(%error, %place, "an upload was left out");
    }
    occupied
}

/// A client that stalls does not hold its request for ever.
async fn in_time<T>(part: impl Future<Output = Result<T, MultipartError>>) -> Result<T, ApiError> {
    let part = tokio::time::timeout(BODY_TIMEOUT, part).await.map_err(|_| ApiError::TooSlow)?;
    part.map_err(|error| match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => too_much(),
        _ => ApiError::BadRequest(format!("the form cannot be read: {}", error.body_text())),
    })
}

fn too_much() -> ApiError {
    ApiError::FileTooLarge("Total upload size too large".to_owned())
}

fn no_files_field() -> ApiError {
    ApiError::issue(Issue::new("missing", vec!["body".into(), "files".into()], "Field required", &Value::Null))
}

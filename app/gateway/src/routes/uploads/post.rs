//! `POST`: files as parts of a form, written while they come.

use axum::Json;
use axum::extract::multipart::MultipartError;
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, Request, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use harness::runtime::actor_context::effective_user_id;
use harness::runtime::runs::store::Made;
use harness::uploads::{UploadBatch, UploadError};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::error::{ApiError, Issue};
use crate::extract::{BODY_TIMEOUT, Ids};
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
    let mut batch = UploadBatch::new(state.files.thread(&user, &thread), limits);
    let digest = receive(form, &mut batch, asked.is_named()).await?;
    let key = asked.with_digest(&state, digest);
    if let Some(before) = made_before(&state, key.as_ref()).await? {
        return again(before);
    }
    let answer = json!(batch.appear(&user, &thread, state.info.documents().as_deref()).await?);
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

/// Writes the files of a form, and gives a digest of the names as they came, and of the contents if the request has a name.
async fn receive(mut form: Multipart, batch: &mut UploadBatch, named: bool) -> Result<Sha256, ApiError> {
    let (mut field_seen, mut digest) = (false, Sha256::new());
    while let Some(mut field) = in_time(form.next_field()).await? {
        if field.name() != Some("files") {
            continue;
        }
        field_seen = true;
        let raw = field.file_name().unwrap_or_default().to_owned();
        if raw.is_empty() {
            continue;
        }
        digest.update(Sha256::digest(&raw));
        let Some(mut file) = batch.begin(&raw).await? else { continue };
        let mut content = Sha256::new();
        while let Some(piece) = in_time(field.chunk()).await? {
            if named {
                content.update(&piece);
            }
            file = batch.write(file, piece).await?;
        }
        digest.update(content.finalize());
        batch.add(file);
    }
    match field_seen {
        false => Err(no_files_field()),
        true if batch.is_empty() => Err(UploadError::Nothing.into()),
        true => Ok(digest),
    }
}

/// A client that stalls does not hold its request for ever.
async fn in_time<T>(part: impl Future<Output = Result<T, MultipartError>>) -> Result<T, ApiError> {
    let part = tokio::time::timeout(BODY_TIMEOUT, part).await.map_err(|_| ApiError::TooSlow)?;
    part.map_err(|error| match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => UploadError::TooMuch.into(),
        _ => ApiError::BadRequest(format!("the form cannot be read: {}", error.body_text())),
    })
}

fn no_files_field() -> ApiError {
    ApiError::issue(Issue::new("missing", vec!["body".into(), "files".into()], "Field required", &Value::Null))
}

//! `POST`: files as parts of a form, written while they come.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use axum::Json;
use axum::body::Body;
use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, Request, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use bytes::Bytes;
use futures_util::TryStreamExt;
use harness::runtime::actor_context::effective_user_id;
use harness::runtime::runs::store::Made;
use harness::uploads::{UploadBatch, UploadError};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::error::{ApiError, Issue};
use crate::extract::{BODY_TIMEOUT, Ids, refuse_declared};
use crate::repeats::{Repeatable, made_before, made_of, replayed};
use crate::routes::{App, Reply};

/// What boundaries and headers of parts may add to the files, in bytes.
const FORM_OVERHEAD: u64 = 1024 * 1024;
/// How much may come of a form, in bytes, before what came is a part's: its reader looks all of that through again with each piece.
const MOST_UNREAD: u64 = 4 * FORM_OVERHEAD;

pub(crate) async fn post(
    State(state): App,
    ids: Ids,
    asked: Repeatable,
    mut request: Request,
) -> Reply {
    let thread = ids.thread()?;
    state.health.require_space()?;
    let limits = state.info.uploads();
    let most = limits.max_total_size.saturating_add(FORM_OVERHEAD);
    refuse_declared(&request, most).map_err(|_| UploadError::TooMuch)?;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    DefaultBodyLimit::max(most).apply(&mut request);
    let meter = Arc::<Meter>::default();
    let form = Multipart::from_request(meter.watch(request), &())
        .await
        .map_err(|_| no_files_field())?;
    let user = effective_user_id();
    let mut batch = UploadBatch::new(state.files.thread(&user, &thread), limits);
    let digest = receive(form, &meter, &mut batch, asked.is_named()).await?;
    let key = asked.with_digest(&state, digest);
    if let Some(before) = made_before(&state, key.as_ref()).await? {
        return again(before);
    }
    let answer = json!(
        batch
            .appear(&user, &thread, state.info.documents().as_deref())
            .await?
    );
    // Files are no rows: should this be lost, the same files are written once more in their places.
    if let Some(key) = &key
        && let Some(known) = state
            .requests
            .keep(key, Made::Answer(answer.clone()), state.clock.now())
            .await?
    {
        return again(made_of(known)?);
    }
    Ok(Json(answer).into_response())
}

/// The answer of the time when the same files came first.
fn again(made: Made) -> Reply {
    match made {
        Made::Answer(answer) => Ok(replayed(Json(answer).into_response())),
        other => Err(ApiError::Internal(format!(
            "an upload is known to have made {other:?}"
        ))),
    }
}

/// How much of a form came, and how much of that was read as parts, in bytes.
#[derive(Debug, Default)]
struct Meter {
    came: AtomicU64,
    read: AtomicU64,
}

impl Meter {
    /// The request, whose body is measured as it comes.
    fn watch(self: &Arc<Self>, request: Request) -> Request {
        let meter = self.clone();
        request.map(|body| {
            Body::from_stream(body.into_data_stream().inspect_ok(move |piece| {
                meter.came.fetch_add(piece.len() as u64, Ordering::Relaxed);
            }))
        })
    }

    /// The next part, unless too much comes before it.
    async fn next_part<'a>(&self, form: &'a mut Multipart) -> Result<Option<Field<'a>>, ApiError> {
        let mut next = pin!(in_time(form.next_field()));
        poll_fn(|cx| match next.as_mut().poll(cx) {
            Poll::Pending if self.unread() > MOST_UNREAD => Poll::Ready(Err(wordy())),
            polled => polled,
        })
        .await
    }

    /// A piece of a part.
    async fn piece(&self, part: &mut Field<'_>) -> Result<Option<Bytes>, ApiError> {
        let piece = in_time(part.chunk()).await?;
        self.read.fetch_add(
            piece.as_ref().map_or(0, |piece| piece.len() as u64),
            Ordering::Relaxed,
        );
        Ok(piece)
    }

    fn unread(&self) -> u64 {
        self.came
            .load(Ordering::Relaxed)
            .saturating_sub(self.read.load(Ordering::Relaxed))
    }
}

fn wordy() -> ApiError {
    ApiError::BadRequest(format!(
        "the form cannot be read: more than {MOST_UNREAD} bytes of it belong to no part"
    ))
}

/// Writes the files of a form, and gives a digest of the names as they came, and of the contents if the request has a name.
async fn receive(
    mut form: Multipart,
    meter: &Meter,
    batch: &mut UploadBatch,
    named: bool,
) -> Result<Sha256, ApiError> {
    let (mut field_seen, mut digest) = (false, Sha256::new());
    while let Some(mut field) = meter.next_part(&mut form).await? {
        let is_file = field.name() == Some("files");
        field_seen |= is_file;
        let raw = field
            .file_name()
            .filter(|_| is_file)
            .unwrap_or_default()
            .to_owned();
        let mut file = None;
        if !raw.is_empty() {
            digest.update(Sha256::digest(&raw));
            file = batch.begin(&raw).await?;
        }
        let mut content = Sha256::new();
        while let Some(piece) = meter.piece(&mut field).await? {
            let Some(begun) = file else { continue };
            if named {
                content.update(&piece);
            }
            file = Some(batch.write(begun, piece).await?);
        }
        if let Some(file) = file {
            digest.update(content.finalize());
            batch.add(file);
        }
    }
    match field_seen {
        false => Err(no_files_field()),
        true if batch.is_empty() => Err(UploadError::Nothing.into()),
        true => Ok(digest),
    }
}

/// A client that stalls does not hold its request for ever.
async fn in_time<T>(part: impl Future<Output = Result<T, MultipartError>>) -> Result<T, ApiError> {
    let part = tokio::time::timeout(BODY_TIMEOUT, part)
        .await
        .map_err(|_| ApiError::TooSlow)?;
    part.map_err(|error| match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => UploadError::TooMuch.into(),
        _ => ApiError::BadRequest(format!("the form cannot be read: {}", error.body_text())),
    })
}

fn no_files_field() -> ApiError {
    ApiError::issue(Issue::new(
        "missing",
        vec!["body".into(), "files".into()],
        "Field required",
        &Value::Null,
    ))
}

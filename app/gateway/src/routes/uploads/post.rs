//! `POST`: files as parts of a form, written while they are received.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use axum::Json;
use axum::body::{Body, HttpBody as _};
use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, Request, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use bytes::Bytes;
use futures_util::TryStreamExt;
use harness::runtime::actor_context::effective_user_id;
use harness::runtime::runs::store::CreatedResource;
use harness::uploads::{UploadBatch, UploadError};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::error::{ApiError, Issue};
use crate::extract::{BODY_TIMEOUT, IdempotencyKey, Ids, refuse_declared};
use crate::routes::idempotency::{created_by, find_created, mark_replayed};
use crate::routes::{App, ResponseResult};

/// Allowance for boundaries and part headers, in bytes.
const FORM_OVERHEAD: u64 = 1024 * 1024;
/// Maximum number of bytes received before they become a part: they are in memory, and the parser
/// rescans all of them with each chunk.
const MAX_BUFFERED: u64 = 128 * 1024;

pub(crate) async fn post(
    State(state): App,
    ids: Ids,
    idempotency_key: IdempotencyKey,
    mut request: Request,
) -> ResponseResult {
    let thread = ids.thread()?;
    state.observability.health.require_space()?;
    let mut limits = state.info.uploads();
    let max_body_size = limits.max_total_size.saturating_add(FORM_OVERHEAD);
    refuse_declared(&request, max_body_size).map_err(|_| UploadError::TooMuch)?;
    let max_body_size = usize::try_from(max_body_size).unwrap_or(usize::MAX);
    DefaultBodyLimit::max(max_body_size).apply(&mut request);
    let user = effective_user_id();
    let declared = request.body().size_hint().exact();
    let requested = declared.map_or(limits.max_total_size, |declared| {
        declared.min(limits.max_total_size)
    });
    let meter = Arc::<Meter>::default();
    let form = Multipart::from_request(meter.measure(request), &())
        .await
        .map_err(|_| no_files_field())?;
    let quota = &state.thread_services.file_quota;
    let reservation = quota.reserve(&user, requested).await?;
    let max_total_size = limits.max_total_size;
    if let Some(reservation) = &reservation {
        limits.max_total_size = max_total_size.min(reservation.bytes());
    }
    let mut batch = UploadBatch::new(state.thread_services.files.thread(&user, &thread), limits);
    let received = receive(form, &meter, &mut batch, idempotency_key.is_present()).await;
    let written = batch.bytes();
    let digest = match (received, &reservation) {
        // Without the quota, the upload would be permitted.
        (Err(_), Some(reservation))
            if written > limits.max_total_size && written <= max_total_size =>
        {
            return Err(reservation.exceeded().into());
        }
        (received, _) => received?,
    };
    let key = idempotency_key.with_digest(&state, digest);
    if let Some(before) = find_created(&state, key.as_ref()).await? {
        return replay(before);
    }
    let response = json!(
        batch
            .appear(&user, &thread, state.info.documents().as_deref())
            .await?
    );
    if let Some(reservation) = reservation {
        reservation.finish(written);
    }
    // Files are not rows: if the key is lost, a retry writes the same files again.
    if let Some(key) = &key
        && let Some(known) = state
            .run_services
            .requests
            .keep(
                key,
                CreatedResource::Answer(response.clone()),
                state.process.clock.now(),
            )
            .await?
    {
        return replay(created_by(known)?);
    }
    Ok(Json(response).into_response())
}

/// Returns the response of the first upload.
fn replay(created: CreatedResource) -> ResponseResult {
    match created {
        CreatedResource::Answer(response) => Ok(mark_replayed(Json(response).into_response())),
        other => Err(ApiError::Internal(format!(
            "the idempotency key of an upload refers to {other:?}"
        ))),
    }
}

/// Number of bytes received, and number of bytes read as parts.
#[derive(Debug, Default)]
struct Meter {
    received: AtomicU64,
    read: AtomicU64,
}

impl Meter {
    /// Returns the request with a metered body.
    fn measure(self: &Arc<Self>, request: Request) -> Request {
        let meter = self.clone();
        request.map(|body| {
            Body::from_stream(body.into_data_stream().inspect_ok(move |chunk| {
                meter
                    .received
                    .fetch_add(chunk.len() as u64, Ordering::Relaxed);
            }))
        })
    }

    /// Returns the next part, unless too many bytes precede it.
    async fn next_part<'a>(&self, form: &'a mut Multipart) -> Result<Option<Field<'a>>, ApiError> {
        let mut next = pin!(with_timeout(form.next_field()));
        poll_fn(|cx| match next.as_mut().poll(cx) {
            Poll::Pending if self.unparsed() > MAX_BUFFERED => Poll::Ready(Err(overhead_error())),
            polled => polled,
        })
        .await
    }

    /// Returns a chunk of a part.
    async fn chunk(&self, part: &mut Field<'_>) -> Result<Option<Bytes>, ApiError> {
        let chunk = with_timeout(part.chunk()).await?;
        self.read.fetch_add(
            chunk.as_ref().map_or(0, |chunk| chunk.len() as u64),
            Ordering::Relaxed,
        );
        Ok(chunk)
    }

    fn unparsed(&self) -> u64 {
        self.received
            .load(Ordering::Relaxed)
            .saturating_sub(self.read.load(Ordering::Relaxed))
    }
}

fn overhead_error() -> ApiError {
    ApiError::BadRequest(format!(
        "invalid form: more than {MAX_BUFFERED} bytes belong to no part"
    ))
}

/// Writes the files of a form. Returns a digest of the names as sent, and of the contents if the
/// request has an idempotency key.
async fn receive(
    mut form: Multipart,
    meter: &Meter,
    batch: &mut UploadBatch,
    has_key: bool,
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
        while let Some(chunk) = meter.chunk(&mut field).await? {
            let Some(open_file) = file else { continue };
            if has_key {
                content.update(&chunk);
            }
            file = Some(batch.write(open_file, chunk).await?);
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

/// Limits the time that a stalled client can hold its request.
async fn with_timeout<T>(
    part: impl Future<Output = Result<T, MultipartError>>,
) -> Result<T, ApiError> {
    let part = tokio::time::timeout(BODY_TIMEOUT, part)
        .await
        .map_err(|_| ApiError::TooSlow)?;
    part.map_err(|error| match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => UploadError::TooMuch.into(),
        _ => ApiError::BadRequest(format!("invalid form: {}", error.body_text())),
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

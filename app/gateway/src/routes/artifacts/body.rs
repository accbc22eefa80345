//! A response body that reads a file, or a part of it, while it is sent.

use std::io::{self, SeekFrom};

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

/// Size of one read, in bytes.
const CHUNK_SIZE: u64 = 64 * 1024;

/// Returns a body of `length` bytes of `file` from `first` on. If the file shrank meanwhile, the
/// connection breaks instead of ending normally.
pub(super) async fn file_body(mut file: File, first: u64, length: u64) -> io::Result<Body> {
    file.seek(SeekFrom::Start(first)).await?;
    Ok(Body::from_stream(stream::try_unfold(
        (file, length),
        |(mut file, remaining)| async move {
            if remaining == 0 {
                return Ok::<_, io::Error>(None);
            }
            let mut chunk = vec![0; usize::try_from(remaining.min(CHUNK_SIZE)).unwrap_or_default()];
            let read = file.read(&mut chunk).await?;
            if read == 0 {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the file shrank while it was sent",
                ));
            }
            chunk.truncate(read);
            Ok(Some((Bytes::from(chunk), (file, remaining - read as u64))))
        },
    )))
}

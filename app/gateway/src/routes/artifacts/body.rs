//! A file, or a part of it, as a body that is read as it is sent.

use std::io::{self, SeekFrom};

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

/// How much is read at a time.
const PIECE: u64 = 64 * 1024;

/// `length` bytes of `file` from `first` on. A file that shrank meanwhile breaks the connection instead of ending it.
pub(super) async fn file_body(mut file: File, first: u64, length: u64) -> io::Result<Body> {
    file.seek(SeekFrom::Start(first)).await?;
    Ok(Body::from_stream(stream::try_unfold(
        (file, length),
        |(mut file, left)| async move {
            if left == 0 {
                return Ok::<_, io::Error>(None);
            }
            let mut piece = vec![0; usize::try_from(left.min(PIECE)).unwrap_or_default()];
            let read = file.read(&mut piece).await?;
            if read == 0 {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the file became shorter while it was sent",
                ));
            }
            piece.truncate(read);
            Ok(Some((Bytes::from(piece), (file, left - read as u64))))
        },
    )))
}

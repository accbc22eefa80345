//! Bytes both ways between two ends, until one has nothing more to say.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, copy, split};
use tokio::time::timeout;

/// How long the rest of an answer is waited for once the asking end has closed its side.
const HALF_OPEN: Duration = Duration::from_secs(60);

/// Carries bytes between the end that asks and the one that answers. Over once the answering end has closed, or some time after the
/// asking one has.
pub(super) async fn carry(
    asking: impl AsyncRead + AsyncWrite,
    answering: impl AsyncRead + AsyncWrite,
) -> io::Result<()> {
    let (mut from_asking, mut to_asking) = split(asking);
    let (mut from_answering, mut to_answering) = split(answering);
    let up = async {
        copy(&mut from_asking, &mut to_answering).await?;
        to_answering.shutdown().await
    };
    let down = async {
        copy(&mut from_answering, &mut to_asking).await?;
        to_asking.shutdown().await
    };
    tokio::pin!(up, down);
    tokio::select! {
        answered = &mut down => answered,
        asked = &mut up => {
            asked?;
            timeout(HALF_OPEN, down).await.unwrap_or(Ok(()))
        }
    }
}

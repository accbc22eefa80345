//! Bidirectional copy between a client and a server.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, copy, split};
use tokio::time::timeout;

/// Time in which the server may finish its response after the client has closed its side.
const HALF_OPEN_TIMEOUT: Duration = Duration::from_secs(60);

/// Copies bytes in both directions. Ends when the server has closed its side, or at most
/// [`HALF_OPEN_TIMEOUT`] after the client has closed its own.
pub(super) async fn copy_both_ways(
    client: impl AsyncRead + AsyncWrite,
    server: impl AsyncRead + AsyncWrite,
) -> io::Result<()> {
    let (mut from_client, mut to_client) = split(client);
    let (mut from_server, mut to_server) = split(server);
    let up = async {
        copy(&mut from_client, &mut to_server).await?;
        to_server.shutdown().await
    };
    let down = async {
        copy(&mut from_server, &mut to_client).await?;
        to_client.shutdown().await
    };
    tokio::pin!(up, down);
    tokio::select! {
        downloaded = &mut down => downloaded,
        uploaded = &mut up => {
            uploaded?;
            timeout(HALF_OPEN_TIMEOUT, down).await.unwrap_or(Ok(()))
        }
    }
}

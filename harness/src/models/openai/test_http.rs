//! What test servers read of a request.

use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// The head in small letters, and the body, once all of it is there; none when the client goes before.
pub(super) async fn read_request(socket: &mut TcpStream) -> Option<(String, Value)> {
    let mut bytes = Vec::new();
    loop {
        if socket.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && let Ok(body) = serde_json::from_str(body)
        {
            return Some((head.to_lowercase(), body));
        }
    }
}

/// Waits until the client has gone.
pub(super) async fn until_gone(socket: &mut TcpStream) {
    let mut bytes = Vec::new();
    while socket.read_buf(&mut bytes).await.unwrap_or(0) > 0 {}
}

//! Event streams: headers, bytes, replay, disconnecting clients.

mod disconnect;
mod frames;
mod replay;

use axum::body::BodyDataStream;
use futures_util::StreamExt;

const GONE: &str = "9c909fe5-1423-4566-9403-37f8a945b29b";

/// Reads a stream until its text contains `mark`.
async fn read_until(stream: &mut BodyDataStream, mark: &str) -> String {
    let mut text = String::new();
    while !text.contains(mark) {
        let chunk = stream
            .next()
            .await
            .expect("more of the stream")
            .expect("no error");
        text.push_str(std::str::from_utf8(&chunk).expect("UTF-8"));
    }
    text
}

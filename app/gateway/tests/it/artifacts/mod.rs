//! Artifacts: served and rejected paths, and headers that keep browsers from running any content.

mod editing;
mod serving;

use bytes::Bytes;
use harness::ids::ThreadId;
use harness::sandbox::VirtualPath;
use harness::sandbox::pending_file::Durability;

use crate::support::Gateway;

async fn with_file(gateway: &Gateway, name: &str, content: impl Into<Bytes>) -> String {
    let thread = gateway.thread().await;
    let files = gateway
        .files
        .home
        .thread("default", &ThreadId::parse(thread.clone()).expect("an id"));
    let path = VirtualPath::parse(&format!("/mnt/user-data/outputs/{name}")).expect("a path");
    let mut file = files.begin_write(&path).await.expect("a file");
    file = file.write(content.into()).await.expect("a write");
    file.finish(Durability::Cached).await.expect("a file");
    format!("/api/threads/{thread}/artifacts/mnt/user-data/outputs")
}

//! Changes of the extensions file: by others, and through the port.

use std::time::Duration;

use serde_json::json;
use tokio::time::advance;

use super::*;

/// Port over a file that does not exist yet.
fn fresh() -> (tempfile::TempDir, ConfiguredMcp) {
    let folder = tempfile::tempdir().unwrap();
    let source = McpConfigSource {
        file: Arc::new(ExtensionsFile::at(folder.path().join("extensions.json"))),
        config: Arc::new(Arc::new(AppConfig::default())),
        variables: Variables::new(|_| None),
        launchers: vec![],
    };
    let context = McpContext {
        files: None,
        variables: vec![],
        tasks: Tasks::new(),
    };
    (folder, ConfiguredMcp::open(source, context).unwrap())
}

/// Returns the names of the servers that runs see.
async fn seen(mcp: &ConfiguredMcp) -> Option<Vec<String>> {
    let extensions = mcp.config().extensions().await?;
    let servers = extensions.section(MCP_SERVERS);
    Some(servers.map_or_else(Vec::new, |servers| servers.keys().cloned().collect()))
}

/// Adds a disabled server through the port.
fn add(name: &'static str) -> McpChange {
    Box::new(move |servers| {
        servers.insert(name.to_owned(), json!({ "enabled": false }));
        Ok(())
    })
}

fn write(folder: &tempfile::TempDir, text: &str) {
    std::fs::write(folder.path().join("extensions.json"), text).unwrap();
}

#[tokio::test(start_paused = true)]
async fn file_change_is_seen_by_runs_after_a_second() {
    let (folder, mcp) = fresh();
    assert_eq!(seen(&mcp).await, Some(vec![]));
    write(&folder, r#"{"mcpServers": {"a": {"enabled": false}}}"#);
    advance(Duration::from_millis(400)).await;
    assert_eq!(seen(&mcp).await, Some(vec![]), "the file is not read");
    let listed = mcp.servers().await.unwrap();
    assert_eq!(listed.len(), 1, "clients see the file as it is");
    advance(Duration::from_millis(600)).await;
    assert_eq!(seen(&mcp).await, Some(vec!["a".to_owned()]));
    let before = mcp.config().extensions().await.unwrap();
    folder.close().unwrap();
    let after = mcp.config().extensions().await.unwrap();
    assert!(Arc::ptr_eq(&before, &after));
}

#[tokio::test(start_paused = true)]
async fn change_through_the_port_is_seen_at_once() {
    let (_folder, mcp) = fresh();
    assert_eq!(seen(&mcp).await, Some(vec![]));
    mcp.change(add("a")).await.unwrap();
    assert_eq!(seen(&mcp).await, Some(vec!["a".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn invalid_file_is_read_again_by_the_next_run() {
    let (folder, mcp) = fresh();
    write(&folder, "[");
    mcp.reset().await;
    assert_eq!(seen(&mcp).await, None);
    write(&folder, r#"{"mcpServers": {"a": {"enabled": false}}}"#);
    assert_eq!(seen(&mcp).await, Some(vec!["a".to_owned()]));
}

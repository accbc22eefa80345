//! Documents of a local HTTP server.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::net::SystemLookup;

/// Loads a path of a server that answers one request. Returns its port as well.
async fn load_from(response: &str, path: &str) -> (u16, Result<Value, FlowError>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 2048];
        let read = stream.read(&mut request).await.unwrap();
        let text = String::from_utf8_lossy(&request[..read]).to_lowercase();
        assert!(text.contains("authorization: bearer key"), "{text}");
        stream.write_all(response.as_bytes()).await.unwrap();
    };
    let url = format!("http://127.0.0.1:{port}{path}");
    let (loaded, ()) = tokio::join!(load(&["127.0.0.1:*"], &url), server);
    (port, loaded)
}

async fn load(hosts: &[&str], url: &str) -> Result<Value, FlowError> {
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let lookup = Arc::new(SystemLookup::default());
    let loader = HttpLoader::new(Arc::new(move || hosts.clone()), lookup);
    let config = json!({"url": url, "authType": "bearer", "authToken": "key"});
    loader.load(config.as_object().unwrap()).await
}

#[tokio::test]
async fn body_of_a_listed_host_is_a_document() {
    let response = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
    let (port, loaded) = load_from(response, "/a?token=canary").await;
    let place = format!("http://127.0.0.1:{port}/a");
    let expected = json!([{"path": place, "content": "hello", "size": 5}]);
    assert_eq!(loaded, Ok(expected));
}

#[tokio::test]
async fn hosts_that_are_not_listed_are_refused() {
    for (hosts, url) in [
        (&[][..], "http://127.0.0.1:9/"),
        (&["docs.example"][..], "http://127.0.0.1:9/"),
        (&["docs.example"][..], "https://docs.example:8443/"),
        (&["docs.example"][..], "https://docs.example.evil.example/"),
        (&["docs.example"][..], "https://user:pass@docs.example/"),
        (&["docs.example"][..], "ftp://docs.example/"),
    ] {
        let error = load(hosts, url).await.unwrap_err();
        assert_eq!(error.code, "loader_not_allowed", "{url}");
        assert!(!error.message.contains("pass"), "{}", error.message);
    }
}

#[tokio::test]
async fn redirect_and_error_status_fail() {
    for response in [
        "HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n",
    ] {
        let (_, loaded) = load_from(response, "/").await;
        let error = loaded.unwrap_err();
        assert_eq!(error.code, "loader_failed");
        assert_eq!(error.retryable, response.contains("503"));
    }
}

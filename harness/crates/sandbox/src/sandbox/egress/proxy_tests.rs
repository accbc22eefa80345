//! Allowed and denied connections through the proxy, over real sockets.

#[path = "proxy_resource_tests.rs"]
mod resource;

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use tokio::net::TcpListener;

use super::*;

/// A resolver that returns another address on each lookup, and counts the lookups.
#[derive(Debug)]
struct Rebinding {
    answers: Vec<Vec<IpAddr>>,
    lookups: AtomicUsize,
}

#[async_trait]
impl Lookup for Rebinding {
    async fn lookup(&self, _host: &str) -> Vec<IpAddr> {
        let look = self.lookups.fetch_add(1, Ordering::Relaxed);
        self.answers[look.min(self.answers.len() - 1)].clone()
    }
}

fn resolving_to(answers: &[&[&str]]) -> Arc<Rebinding> {
    let answers = answers
        .iter()
        .map(|found| {
            found
                .iter()
                .map(|address| address.parse().unwrap())
                .collect()
        })
        .collect();
    Arc::new(Rebinding {
        answers,
        lookups: AtomicUsize::new(0),
    })
}

/// A host that echoes the head of each request.
struct Host {
    port: u16,
    callers: Arc<AtomicUsize>,
}

async fn host(tasks: &Tasks) -> Host {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let (port, callers) = (
        listener.local_addr().unwrap().port(),
        Arc::new(AtomicUsize::new(0)),
    );
    let seen = callers.clone();
    let spawner = tasks.clone();
    let serving = async move {
        loop {
            let (mut caller, _) = listener.accept().await.unwrap();
            seen.fetch_add(1, Ordering::SeqCst);
            spawner.spawn(TaskKind::Service, "caller", async move {
                let mut sent = Vec::new();
                while !sent.ends_with(b"\r\n\r\n") && caller.read_buf(&mut sent).await.unwrap() > 0
                {
                }
                let text = format!(
                    "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nyou said: {}",
                    String::from_utf8_lossy(&sent)
                );
                // The client may have disconnected.
                let _heard = caller.write_all(text.as_bytes()).await;
            });
        }
    };
    tasks.spawn(TaskKind::Service, "host", serving);
    Host { port, callers }
}

struct Scene {
    _folder: tempfile::TempDir,
    proxy: EgressProxy,
    endpoint: Box<dyn EgressEndpoint>,
    host: Host,
    _tasks: Tasks,
}

async fn scene(
    rules: impl FnOnce(u16) -> Vec<String>,
    lookup: Arc<dyn Lookup>,
    limits: ProxyLimits,
) -> Scene {
    let (folder, tasks) = (tempfile::tempdir().unwrap(), Tasks::new());
    let host = host(&tasks).await;
    let rules = HostRules::only(rules(host.port)).unwrap();
    let proxy = EgressProxy::new(folder.path(), rules, lookup, limits).unwrap();
    let endpoint = proxy.open().unwrap();
    Scene {
        _folder: folder,
        proxy,
        endpoint,
        host,
        _tasks: tasks,
    }
}

impl Scene {
    /// Returns the full response of the proxy to a request.
    async fn send(&self, text: &str) -> String {
        let mut client = UnixStream::connect(self.endpoint.socket()).await.unwrap();
        client.write_all(text.as_bytes()).await.unwrap();
        let mut response = Vec::new();
        client.read_to_end(&mut response).await.unwrap();
        String::from_utf8_lossy(&response).into_owned()
    }

    fn callers(&self) -> usize {
        self.host.callers.load(Ordering::SeqCst)
    }
}

async fn scene_with_host() -> Scene {
    scene(
        |port| vec![format!("127.0.0.1:{port}")],
        resolving_to(&[&[]]),
        ProxyLimits::default(),
    )
    .await
}

#[tokio::test]
async fn listed_address_is_reached_by_request_and_connect() {
    let scene = scene_with_host().await;
    let port = scene.host.port;
    let response = scene
        .send(&format!(
            "GET http://127.0.0.1:{port}/x HTTP/1.1\r\nHost: evil.example\r\n\r\n"
        ))
        .await;
    assert!(
        response.ends_with(&format!(
            "you said: GET /x HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
        )),
        "{response}"
    );
    // Bytes after the head in the same chunk are forwarded too.
    let response = scene
        .send(&format!(
            "CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\nhello\r\n\r\n"
        ))
        .await;
    assert!(
        response.starts_with("HTTP/1.1 200 ") && response.ends_with("you said: hello\r\n\r\n"),
        "{response}"
    );
    assert_eq!(scene.callers(), 2);
}

#[tokio::test]
async fn unlisted_host_is_denied_and_setting_named() {
    let scene = scene_with_host().await;
    let port = scene.host.port;
    for (text, expected) in [
        (
            format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\n"),
            "HTTP/1.1 403 Forbidden by sandbox.network\r\n",
        ),
        (
            format!("CONNECT 127.0.0.2:{port} HTTP/1.1\r\n\r\n"),
            "HTTP/1.1 403 ",
        ),
        (
            format!("CONNECT [::1]:{port} HTTP/1.1\r\n\r\n"),
            "HTTP/1.1 403 ",
        ),
        (
            "CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n".to_owned(),
            "HTTP/1.1 403 ",
        ),
        (
            format!("CONNECT 127.0.0.1:{port}\0 HTTP/1.1\r\n\r\n"),
            "HTTP/1.1 400 ",
        ),
        (
            format!("CONNECT evil@127.0.0.1:{port} HTTP/1.1\r\n\r\n"),
            "HTTP/1.1 400 ",
        ),
        (
            format!("GET http://evil@127.0.0.1:{port}/ HTTP/1.1\r\n\r\n"),
            "HTTP/1.1 400 ",
        ),
        (
            format!("GET /x HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"),
            "HTTP/1.1 400 ",
        ),
        ("\u{5}\u{1}\0".to_owned(), "HTTP/1.1 400 "),
    ] {
        let response = scene.send(&text).await;
        assert!(response.starts_with(expected), "{text:?}: {response}");
        assert!(
            !expected.contains("403") || response.contains("sandbox.network: "),
            "{response}"
        );
    }
    assert_eq!(scene.callers(), 0);
}

#[tokio::test]
async fn second_request_on_connection_reaches_no_other_host() {
    let scene = scene_with_host().await;
    let port = scene.host.port;
    let other = host(&scene._tasks).await;
    let first = format!("GET http://127.0.0.1:{port}/ HTTP/1.1\r\n\r\n");
    scene
        .send(&format!(
            "{first}GET http://127.0.0.1:{}/ HTTP/1.1\r\n\r\n",
            other.port
        ))
        .await;
    assert_eq!(
        (scene.callers(), other.callers.load(Ordering::SeqCst)),
        (1, 0)
    );
}

#[tokio::test]
async fn name_is_resolved_once_per_connection() {
    // A second lookup would return the address of this host.
    let lookup = resolving_to(&[&["127.0.0.3"], &["127.0.0.1"]]);
    let limits = ProxyLimits {
        connect: Duration::from_millis(500),
        ..ProxyLimits::default()
    };
    let scene = scene(
        |port| vec![format!("name.example:{port}"), format!("127.0.0.3:{port}")],
        lookup.clone(),
        limits,
    )
    .await;
    let response = scene
        .send(&format!(
            "CONNECT name.example:{} HTTP/1.1\r\n\r\n",
            scene.host.port
        ))
        .await;
    assert!(response.starts_with("HTTP/1.1 502 "), "{response}");
    assert_eq!(
        (lookup.lookups.load(Ordering::Relaxed), scene.callers()),
        (1, 0)
    );
}

#[tokio::test]
async fn listed_name_with_private_address_is_denied() {
    for inside in [
        &["127.0.0.1"][..],
        &["93.184.216.34", "127.0.0.1"],
        &["::ffff:127.0.0.1"],
        &["169.254.169.254"],
        &["::1"],
    ] {
        let scene = scene(
            |port| vec![format!("name.example:{port}")],
            resolving_to(&[inside]),
            ProxyLimits::default(),
        )
        .await;
        let response = scene
            .send(&format!(
                "CONNECT name.example:{} HTTP/1.1\r\n\r\n",
                scene.host.port
            ))
            .await;
        assert!(
            response.starts_with("HTTP/1.1 403 ")
                && response.contains("loopback, private or reserved"),
            "{response}"
        );
        assert_eq!(scene.callers(), 0);
    }
}

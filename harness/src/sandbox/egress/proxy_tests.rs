//! Who gets through the proxy and who does not, over real sockets.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use tokio::net::TcpListener;

use super::*;

/// A name that means another address at each look, and counts them.
#[derive(Debug)]
struct Rebinding {
    answers: Vec<Vec<IpAddr>>,
    looks: AtomicUsize,
}

#[async_trait]
impl Lookup for Rebinding {
    async fn lookup(&self, _host: &str) -> Vec<IpAddr> {
        let look = self.looks.fetch_add(1, Ordering::Relaxed);
        self.answers[look.min(self.answers.len() - 1)].clone()
    }
}

fn meaning(answers: &[&[&str]]) -> Arc<Rebinding> {
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
        looks: AtomicUsize::new(0),
    })
}

/// A host that tells each caller what it said, up to the end of its head.
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
                let mut said = Vec::new();
                while !said.ends_with(b"\r\n\r\n") && caller.read_buf(&mut said).await.unwrap() > 0
                {
                }
                let text = format!(
                    "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nyou said: {}",
                    String::from_utf8_lossy(&said)
                );
                // Who went away does not hear it.
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
    way: Box<dyn Way>,
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
    let way = proxy.open().unwrap();
    Scene {
        _folder: folder,
        proxy,
        way,
        host,
        _tasks: tasks,
    }
}

impl Scene {
    /// All that the proxy answers to this.
    async fn say(&self, text: &str) -> String {
        let mut client = UnixStream::connect(self.way.socket()).await.unwrap();
        client.write_all(text.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn callers(&self) -> usize {
        self.host.callers.load(Ordering::SeqCst)
    }
}

async fn simple() -> Scene {
    scene(
        |port| vec![format!("127.0.0.1:{port}")],
        meaning(&[&[]]),
        ProxyLimits::default(),
    )
    .await
}

#[tokio::test]
async fn a_listed_address_is_reached_by_request_and_by_connection() {
    let scene = simple().await;
    let port = scene.host.port;
    let answer = scene
        .say(&format!(
            "GET http://127.0.0.1:{port}/x HTTP/1.1\r\nHost: evil.example\r\n\r\n"
        ))
        .await;
    assert!(
        answer.ends_with(&format!(
            "you said: GET /x HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
        )),
        "{answer}"
    );
    // What follows the head in the same piece goes through as well.
    let answer = scene
        .say(&format!(
            "CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\nhello\r\n\r\n"
        ))
        .await;
    assert!(
        answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("you said: hello\r\n\r\n"),
        "{answer}"
    );
    assert_eq!(scene.callers(), 2);
}

#[tokio::test]
async fn nobody_else_is_reached_and_the_answer_names_the_setting() {
    let scene = simple().await;
    let port = scene.host.port;
    for (text, wanted) in [
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
        let answer = scene.say(&text).await;
        assert!(answer.starts_with(wanted), "{text:?}: {answer}");
        assert!(
            !wanted.contains("403") || answer.contains("sandbox.network: "),
            "{answer}"
        );
    }
    assert_eq!(scene.callers(), 0);
}

#[tokio::test]
async fn a_second_request_on_a_connection_reaches_no_other_host() {
    let scene = simple().await;
    let port = scene.host.port;
    let other = host(&scene._tasks).await;
    let first = format!("GET http://127.0.0.1:{port}/ HTTP/1.1\r\n\r\n");
    scene
        .say(&format!(
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
async fn a_name_is_looked_up_once_and_what_it_means_afterwards_does_not_count() {
    // The second look, if there were one, would lead to the host here.
    let lookup = meaning(&[&["127.0.0.3"], &["127.0.0.1"]]);
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
    let answer = scene
        .say(&format!(
            "CONNECT name.example:{} HTTP/1.1\r\n\r\n",
            scene.host.port
        ))
        .await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert_eq!(
        (lookup.looks.load(Ordering::Relaxed), scene.callers()),
        (1, 0)
    );
}

#[tokio::test]
async fn a_listed_name_that_leads_inside_in_part_or_whole_is_not_called() {
    for inside in [
        &["127.0.0.1"][..],
        &["93.184.216.34", "127.0.0.1"],
        &["::ffff:127.0.0.1"],
        &["169.254.169.254"],
        &["::1"],
    ] {
        let scene = scene(
            |port| vec![format!("name.example:{port}")],
            meaning(&[inside]),
            ProxyLimits::default(),
        )
        .await;
        let answer = scene
            .say(&format!(
                "CONNECT name.example:{} HTTP/1.1\r\n\r\n",
                scene.host.port
            ))
            .await;
        assert!(
            answer.starts_with("HTTP/1.1 403 ") && answer.contains("loopback, private or reserved"),
            "{answer}"
        );
        assert_eq!(scene.callers(), 0);
    }
}

#[tokio::test]
async fn a_head_without_end_and_a_client_that_says_nothing_are_let_go() {
    let limits = ProxyLimits {
        head: Duration::from_millis(50),
        head_bytes: 2_000,
        connections: 1,
        ..ProxyLimits::default()
    };
    let scene = scene(
        |port| vec![format!("127.0.0.1:{port}")],
        meaning(&[&[]]),
        limits,
    )
    .await;
    assert_eq!(
        scene.say("CONNECT 127").await,
        "",
        "it said too little for too long"
    );
    let answer = scene
        .say(&format!(
            "GET http://127.0.0.1/ HTTP/1.1\r\nA: {}",
            "a".repeat(3_000)
        ))
        .await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    let answer = scene
        .say(&format!(
            "GET http://127.0.0.1/ HTTP/1.1\r\n{}",
            "A: b\r\n".repeat(200)
        ))
        .await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    // The one place is free again.
    assert!(
        scene
            .say(&format!(
                "CONNECT 127.0.0.1:{} HTTP/1.1\r\n\r\n\r\n\r\n",
                scene.host.port
            ))
            .await
            .starts_with("HTTP/1.1 200 ")
    );
}

#[tokio::test]
async fn who_holds_all_places_of_a_command_holds_up_no_other_and_its_end_closes_them() {
    let limits = ProxyLimits {
        connections: 2,
        ..ProxyLimits::default()
    };
    let scene = scene(
        |port| vec![format!("127.0.0.1:{port}")],
        meaning(&[&[]]),
        limits,
    )
    .await;
    let connect = format!("CONNECT 127.0.0.1:{} HTTP/1.1\r\n\r\n", scene.host.port);
    let greedy = scene.proxy.open().unwrap();
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut client = UnixStream::connect(greedy.socket()).await.unwrap();
        client.write_all(connect.as_bytes()).await.unwrap();
        client.read_exact(&mut [0; 12]).await.unwrap();
        held.push(client);
    }
    assert!(
        scene
            .say(&format!("{connect}hello\r\n\r\n"))
            .await
            .ends_with("you said: hello\r\n\r\n")
    );
    let socket = greedy.socket().to_owned();
    drop(greedy);
    for mut client in held {
        client.read_to_end(&mut Vec::new()).await.unwrap();
    }
    assert!(!socket.exists() && UnixStream::connect(&socket).await.is_err());
}

#[tokio::test]
async fn its_sockets_are_gone_with_it_wherever_they_lay() {
    let deep = tempfile::tempdir().unwrap();
    let folder = deep.path().join("a".repeat(200));
    let proxy = EgressProxy::new(
        &folder,
        HostRules::any_public(),
        meaning(&[&[]]),
        ProxyLimits::default(),
    )
    .unwrap();
    let ways = [proxy.open().unwrap(), proxy.open().unwrap()];
    assert!(ways[0].socket() != ways[1].socket() && ways.iter().all(|way| way.socket().exists()));
    assert_eq!(proxy.hosts(), "public hosts");
    drop((proxy, ways));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}

#[tokio::test]
async fn a_folder_that_a_killed_gateway_left_is_removed_by_the_next_and_none_that_is_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        EgressProxy::new(
            folder.path(),
            HostRules::any_public(),
            meaning(&[&[]]),
            ProxyLimits::default(),
        )
        .unwrap()
    };
    let beside = start();
    let way = beside.open().unwrap();
    let left = folder.path().join("egress-left");
    std::fs::create_dir(&left).unwrap();
    std::fs::write(left.join("0"), "").unwrap();
    std::fs::write(folder.path().join("other"), "").unwrap();
    let next = start();
    assert!(
        !left.exists()
            && way.socket().exists()
            && next.open().unwrap().socket().exists()
            && folder.path().join("other").exists()
    );
}

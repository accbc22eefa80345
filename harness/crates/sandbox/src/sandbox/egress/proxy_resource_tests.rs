//! Tests of the limits of the proxy, and of the removal of its sockets.

use super::*;

#[tokio::test]
async fn endless_head_and_silent_client_are_disconnected() {
    let limits = ProxyLimits {
        head: Duration::from_millis(50),
        head_bytes: 2_000,
        connections: 1,
        ..ProxyLimits::default()
    };
    let scene = scene(
        |port| vec![format!("127.0.0.1:{port}")],
        resolving_to(&[&[]]),
        limits,
    )
    .await;
    assert_eq!(
        scene.send("CONNECT 127").await,
        "",
        "the head was sent too slowly"
    );
    let response = scene
        .send(&format!(
            "GET http://127.0.0.1/ HTTP/1.1\r\nA: {}",
            "a".repeat(3_000)
        ))
        .await;
    assert!(response.starts_with("HTTP/1.1 431 "), "{response}");
    let response = scene
        .send(&format!(
            "GET http://127.0.0.1/ HTTP/1.1\r\n{}",
            "A: b\r\n".repeat(200)
        ))
        .await;
    assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
    // The only permit is free again.
    assert!(
        scene
            .send(&format!(
                "CONNECT 127.0.0.1:{} HTTP/1.1\r\n\r\n\r\n\r\n",
                scene.host.port
            ))
            .await
            .starts_with("HTTP/1.1 200 ")
    );
}

#[tokio::test]
async fn connection_limit_is_per_command_and_closes_with_it() {
    let limits = ProxyLimits {
        connections: 2,
        ..ProxyLimits::default()
    };
    let scene = scene(
        |port| vec![format!("127.0.0.1:{port}")],
        resolving_to(&[&[]]),
        limits,
    )
    .await;
    let connect = format!("CONNECT 127.0.0.1:{} HTTP/1.1\r\n\r\n", scene.host.port);
    let greedy = scene.proxy.open().unwrap();
    let mut connections = Vec::new();
    for _ in 0..2 {
        let mut client = UnixStream::connect(greedy.socket()).await.unwrap();
        client.write_all(connect.as_bytes()).await.unwrap();
        client.read_exact(&mut [0; 12]).await.unwrap();
        connections.push(client);
    }
    assert!(
        scene
            .send(&format!("{connect}hello\r\n\r\n"))
            .await
            .ends_with("you said: hello\r\n\r\n")
    );
    let socket = greedy.socket().to_owned();
    drop(greedy);
    for mut client in connections {
        client.read_to_end(&mut Vec::new()).await.unwrap();
    }
    assert!(!socket.exists() && UnixStream::connect(&socket).await.is_err());
}

#[tokio::test]
async fn sockets_are_removed_with_proxy() {
    let deep = tempfile::tempdir().unwrap();
    let folder = deep.path().join("a".repeat(200));
    let proxy = EgressProxy::new(
        &folder,
        HostRules::any_public(),
        resolving_to(&[&[]]),
        ProxyLimits::default(),
    )
    .unwrap();
    let endpoints = [proxy.open().unwrap(), proxy.open().unwrap()];
    assert!(
        endpoints[0].socket() != endpoints[1].socket()
            && endpoints.iter().all(|endpoint| endpoint.socket().exists())
    );
    assert_eq!(proxy.hosts(), "public hosts");
    drop((proxy, endpoints));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}

#[tokio::test]
async fn stale_folders_are_removed_but_none_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        EgressProxy::new(
            folder.path(),
            HostRules::any_public(),
            resolving_to(&[&[]]),
            ProxyLimits::default(),
        )
        .unwrap()
    };
    let other = start();
    let endpoint = other.open().unwrap();
    let stale = folder.path().join("egress-left");
    std::fs::create_dir(&stale).unwrap();
    std::fs::write(stale.join("0"), "").unwrap();
    std::fs::write(folder.path().join("other"), "").unwrap();
    let next = start();
    assert!(
        !stale.exists()
            && endpoint.socket().exists()
            && next.open().unwrap().socket().exists()
            && folder.path().join("other").exists()
    );
}

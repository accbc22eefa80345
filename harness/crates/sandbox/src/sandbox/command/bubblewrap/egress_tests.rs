//! Network access of commands through the proxy, without a bypass; and the write lock in addition
//! to the mounts.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::*;
use crate::sandbox::egress::{EgressProxy, ProxyLimits};
use deerflow_core::net::{HostRules, SystemLookup};

/// A web server on this machine that counts its requests.
struct Server {
    port: u16,
    callers: Arc<AtomicUsize>,
}

fn server() -> Server {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (port, callers) = (
        listener.local_addr().unwrap().port(),
        Arc::new(AtomicUsize::new(0)),
    );
    let seen = callers.clone();
    std::thread::spawn(move || {
        for mut caller in listener.incoming().flatten() {
            seen.fetch_add(1, Ordering::SeqCst);
            let _head = caller.read(&mut [0; 4096]);
            let _gone = caller.write_all(
                b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
            );
        }
    });
    Server { port, callers }
}

impl Fixture {
    async fn reaching_hosts(hosts: &[String]) -> Self {
        let fixture = Self::new().await;
        let rules = HostRules::only(hosts).unwrap();
        let proxy = EgressProxy::new(
            fixture.base.path(),
            rules,
            Arc::new(SystemLookup::default()),
            ProxyLimits::default(),
        )
        .unwrap();
        let options = BubblewrapOptions {
            network: Network::Proxied(Arc::new(proxy)),
            ..fixture.sandbox.options.clone()
        };
        let (sandbox, report) = BubblewrapCommandSandbox::open(options).await;
        Self {
            sandbox: sandbox.unwrap_or_else(|| panic!("{}", report.missing_text())),
            ..fixture
        }
    }
}

#[tokio::test]
#[ignore = "needs bubblewrap; make test-external runs it"]
async fn command_reaches_listed_hosts_through_proxy_variables() {
    let server = server();
    let fixture = Fixture::reaching_hosts(&[format!("127.0.0.1:{}", server.port)]).await;
    assert_eq!(
        fixture.sandbox.reach(),
        Reach::Proxied(format!("127.0.0.1:{}", server.port))
    );
    let python = format!(
        "import os, urllib.request as r; os.environ['no_proxy'] = ''; print(r.urlopen('http://127.0.0.1:{}/').read())",
        server.port
    );
    let (end, out, err) = fixture
        .run(&format!("python3 -c \"{python}\"; exit 7"))
        .await;
    assert_eq!(
        (end, out.as_str(), err.as_str()),
        (CommandEnd::Exited(7), "b'hello'\n", "")
    );
    // A proxy request written by bash alone, without a proxy client.
    let by_hand = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{}; printf 'CONNECT 127.0.0.1:{} HTTP/1.1\\r\\n\\r\\nGET / HTTP/1.1\\r\\n\\r\\n' >&3; cat <&3 | tail -c 5",
        egress::PROXY_PORT,
        server.port
    );
    assert_eq!(fixture.run(&by_hand).await.1, "hello");
    assert_eq!(server.callers.load(Ordering::SeqCst), 2);
    assert_eq!(
        fixture.run("kill -TERM $$").await.0,
        CommandEnd::Exited(143)
    );
    // A background process ends with the command and does not delay its end.
    let (end, out, _) = fixture.run("sleep 1000 & echo done").await;
    assert_eq!((end, out.as_str()), (CommandEnd::Exited(0), "done\n"));
}

#[tokio::test]
#[ignore = "needs bubblewrap; make test-external runs it"]
async fn proxy_cannot_be_bypassed() {
    let (listed, other) = (server(), server());
    let datagrams = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    datagrams.set_nonblocking(true).unwrap();
    let fixture = Fixture::reaching_hosts(&[format!("127.0.0.1:{}", listed.port)]).await;
    let (other_port, udp, proxy) = (
        other.port,
        datagrams.local_addr().unwrap().port(),
        egress::PROXY_PORT,
    );
    let names = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let resolver = names
        .lines()
        .find_map(|line| line.strip_prefix("nameserver "))
        .unwrap_or("9.9.9.9")
        .trim()
        .to_owned();
    for command in [
        format!("exec 3<>/dev/tcp/127.0.0.1/{other_port}"),
        format!("exec 3<>/dev/tcp/127.0.0.1/{}", listed.port),
        format!("exec 3<>/dev/tcp/{resolver}/53"),
        format!("echo x > /dev/udp/127.0.0.1/{udp}"),
        format!("http_proxy= curl -s --max-time 5 http://127.0.0.1:{other_port}/"),
        format!(
            "curl -s --noproxy '' -x http://127.0.0.1:{proxy} --max-time 5 --fail http://127.0.0.1:{other_port}/"
        ),
        format!(
            "curl -s --noproxy '' -x http://127.0.0.1:{proxy} --max-time 5 --fail http://localhost:{}/",
            listed.port
        ),
        format!(
            "curl -s --noproxy '' -p -x http://127.0.0.1:{proxy} --max-time 5 --fail http://[::ffff:127.0.0.1]:{other_port}/"
        ),
        format!(
            "curl -s --socks5-hostname 127.0.0.1:{proxy} --max-time 5 http://127.0.0.1:{other_port}/"
        ),
        "getent hosts example.org".to_owned(),
        "ip link | grep -v lo: | grep -q ,UP".to_owned(),
    ] {
        let (end, out, _) = fixture.run(&command).await;
        assert!(
            end != CommandEnd::Exited(0) || command.contains("udp"),
            "{command}: {out}"
        );
    }
    assert_eq!(
        (
            listed.callers.load(Ordering::SeqCst),
            other.callers.load(Ordering::SeqCst)
        ),
        (0, 0)
    );
    assert!(
        datagrams.recv(&mut [0; 8]).is_err(),
        "a datagram left the sandbox"
    );
    // Killing the relay or connecting to its socket directly does not bypass the proxy.
    let direct = format!(
        "import socket; s = socket.socket(socket.AF_UNIX); s.connect('/mnt/.sandbox/proxy'); \
         s.send(b'CONNECT 127.0.0.1:{other_port} HTTP/1.1\\r\\n\\r\\n'); print(s.recv(12))"
    );
    assert_eq!(
        fixture.run(&format!("python3 -c \"{direct}\"")).await.1,
        "b'HTTP/1.1 403'\n"
    );
    let (_, out, _) = fixture.run("rm -f /mnt/.sandbox/proxy /mnt/.sandbox/program; ls /mnt/.sandbox; kill -9 $PPID; echo on").await;
    assert!(out.starts_with("program\nproxy\n"), "{out}");
    assert_eq!(other.callers.load(Ordering::SeqCst), 0);
}

#[tokio::test]
#[ignore = "needs bubblewrap; make test-external runs it"]
async fn write_lock_holds_on_writable_mount() {
    let fixture = Fixture::new().await;
    let (locked, unlocked) = (
        "{ : >> /dev/random; } 2>&- && echo written",
        BubblewrapOptions {
            inner: None,
            ..fixture.sandbox.options.clone()
        },
    );
    assert_eq!(fixture.run(locked).await.1, "");
    assert_eq!(
        fixture.run("echo a > /tmp/a && mkdir /dev/shm/b && echo c > c && mv c d && echo e >/dev/null && cat /tmp/a d").await.1,
        "a\nc\n"
    );
    let (sandbox, report) = BubblewrapCommandSandbox::open(unlocked).await;
    assert!(
        report.suffices()
            && report
                .missing_text()
                .contains("write lock (Landlock): no inner program"),
        "{}",
        report.missing_text()
    );
    let fixture = Fixture {
        sandbox: sandbox.unwrap(),
        ..fixture
    };
    assert_eq!(fixture.run(locked).await.1, "written\n");
}

#[tokio::test]
#[ignore = "needs bubblewrap; make test-external runs it"]
async fn proxy_without_inner_program_is_rejected() {
    let fixture = Fixture::reaching_hosts(&["example.org".to_owned()]).await;
    let options = BubblewrapOptions {
        inner: None,
        ..fixture.sandbox.options.clone()
    };
    let (sandbox, report) = BubblewrapCommandSandbox::open(options).await;
    assert!(
        sandbox.is_none()
            && report
                .missing_text()
                .contains("network of its own: the proxy needs the inner program"),
        "{}",
        report.missing_text()
    );
}

/// Prints the startup time of a command; `cargo test .. --nocapture` shows it.
#[tokio::test]
#[ignore = "needs bubblewrap; make test-external runs it"]
async fn sandboxes_start_quickly_in_each_mode() {
    let new = Fixture::new().await;
    let plain = BubblewrapOptions {
        inner: None,
        ..new.sandbox.options.clone()
    };
    let plain = Fixture {
        sandbox: BubblewrapCommandSandbox::open(plain).await.0.unwrap(),
        ..Fixture::new().await
    };
    for (what, fixture) in [
        ("plain", plain),
        ("locked", new),
        (
            "proxied",
            Fixture::reaching_hosts(&["example.org".to_owned()]).await,
        ),
    ] {
        let mut took = Vec::new();
        for _ in 0..40 {
            let started = Instant::now();
            assert_eq!(fixture.run("true").await.0, CommandEnd::Exited(0));
            took.push(started.elapsed());
        }
        took.sort_unstable();
        println!("{what}: median {:?}, longest {:?}", took[20], took[39]);
    }
}

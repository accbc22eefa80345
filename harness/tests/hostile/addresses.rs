//! Corpus of addresses that mean this machine, used with the tool that fetches pages, with
//! redirects and with commands: no connection may arrive.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use deerflow_harness::net::{Egress, GuardedClient, Lookup};
use deerflow_harness::sandbox::{
    CommandLimits, CommandRequest, CommandSandbox, SkillMounts, Transcript,
};
use deerflow_harness::testkit::tool_context;
use deerflow_harness::tools::web::{RetryBudget, Variables, WebToolFactory};
use deerflow_harness::tools::{DynTool, ToolContext};
use serde_json::{Value, json};

use crate::marked::marking_sandbox;
use crate::support::dirs_of;

/// Hosts that are this machine, or that some parser takes for it.
const HOSTS: &[&str] = &[
    "127.0.0.1",
    "127.0.0.2",
    "127.1",
    "127.0.1",
    "127.255.255.254",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0x7f.0.0.1",
    "0X7F.0X0.0X0.0X1",
    "017700000001",
    "0177.1",
    "0177.0.0.01",
    "00000177.0.0.1",
    "0x7f.0.1",
    "127.0x1",
    "0",
    "0.0.0.0",
    "00.0.0.0",
    "0x0",
    "0.0",
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::ffff:0:127.0.0.1]",
    "[::127.0.0.1]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "localhost",
    "LOCALHOST",
    "LocalHost",
    "a.localhost",
    "localhost.localdomain",
    "ip6-localhost",
    "home.test",
    "other.test",
    "x.nip.test",
    "xn--lclhost-9ya.test",
    "127.0.0.1.test",
    "１２７.0.0.1",
    "127。0。0。1",
    "①②⑦.0.0.1",
    "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
    "loc\u{ad}alhost",
    "127.0.0.1%2f",
    "%6c%6f%63%61%6c%68%6f%73%74",
    "%31%32%37.0.0.1",
    "metadata.google.internal",
    "metadata",
    "instance-data",
    "169.254.169.254",
    "0xa9fea9fe",
    "2852039166",
    "[fe80::1]",
    "[fd00:ec2::254]",
];

/// Forms of an address; `<>` is the host and `#0` the port.
const FORMS: &[&str] = &[
    "http://<>:#0/",
    "https://<>:#0/",
    "http://<>.:#0/",
    "hTTp://<>:#0",
    "http:<>:#0/",
    "http:/<>:#0/",
    "http:///<>:#0/",
    "http:\\\\<>:#0\\",
    "http://ann@<>:#0/",
    "http://ann:pw@<>:#0/",
    "http://example.test@<>:#0/",
    "http://example.test:80@<>:#0/",
    "http://example.test%00@<>:#0/",
    "http://@<>:#0/",
    "http://:@<>:#0/",
    "http://example.test\\@<>:#0/",
    "http://<>:#0\\@example.test/",
    "http://<>:#0#@example.test/",
    "http://<>:#0?@example.test/",
    "\thttp://<>:#0/",
    "ht\ntp://<>:#0/",
    "http://<>:#0/\r\nhost: example.test",
    "ws://<>:#0/",
    "ftp://<>:#0/",
    "gopher://<>:#0/_x",
    "dict://<>:#0/x",
    "file://<>:#0/etc/passwd",
    "jar:http://<>:#0!/",
    "view-source:http://<>:#0/",
    "//<>:#0/",
    "http://<>:00#0/",
    "http://<>:#0:80/",
    "http://[<>]:#0/",
    "http://<>\u{0}.example.test:#0/",
];

fn corpus(port: u16) -> BTreeSet<String> {
    let port = port.to_string();
    FORMS
        .iter()
        .flat_map(|form| {
            HOSTS
                .iter()
                .map(|host| form.replace("<>", host).replace("#0", &port))
        })
        .collect()
}

/// Listeners that record connections to any address of this machine.
struct Trap {
    tcp: TcpListener,
    udp: UdpSocket,
}

impl Trap {
    fn set() -> Self {
        let tcp = TcpListener::bind("[::]:0")
            .or_else(|_| TcpListener::bind("0.0.0.0:0"))
            .expect("a port");
        let udp = UdpSocket::bind(tcp.local_addr().expect("an address")).expect("a port");
        tcp.set_nonblocking(true).expect("a listener");
        udp.set_nonblocking(true).expect("a socket");
        Self { tcp, udp }
    }

    fn port(&self) -> u16 {
        self.tcp.local_addr().expect("an address").port()
    }

    fn assert_empty(&self, by: &str) {
        let connections = [
            self.tcp.accept().map(|_| ()),
            self.udp.recv(&mut [0; 1]).map(|_| ()),
        ];
        assert!(
            connections.iter().all(|connection| connection
                .as_ref()
                .is_err_and(|error| error.kind() == ErrorKind::WouldBlock)),
            "{by:?} connected"
        );
    }
}

/// Resolver that maps every name to this machine, each time by another address; only `page.test` is
/// the expected server.
#[derive(Debug, Default)]
struct Rebinding(AtomicUsize);

#[async_trait]
impl Lookup for Rebinding {
    async fn lookup(&self, host: &str) -> Vec<IpAddr> {
        if host == "page.test" {
            return vec![Ipv4Addr::LOCALHOST.into()];
        }
        let answers = [
            "127.0.0.1",
            "::1",
            "::ffff:127.0.0.1",
            "93.184.216.34 127.0.0.1",
            "10.0.0.1",
            "169.254.169.254",
            "0.0.0.0",
            "64:ff9b::7f00:1",
            "",
        ];
        let answer = answers[self.0.fetch_add(1, Ordering::Relaxed) % answers.len()];
        answer
            .split_whitespace()
            .map(|address| address.parse().expect("an address"))
            .collect()
    }
}

fn reader(allowed: &[&str]) -> Arc<dyn DynTool> {
    let factory = WebToolFactory::with(
        Variables::new(),
        Arc::new(Rebinding::default()),
        RetryBudget::default(),
    )
    .expect("a kit");
    let entry = json!({ "name": "web_fetch", "group": "web", "use": "direct.web_fetch", "allowed_hosts": allowed });
    factory
        .tool(&serde_json::from_value(entry).expect("an entry"))
        .expect("a web tool")
        .expect("a tool")
}

async fn read(tool: &dyn DynTool, ctx: &ToolContext, url: &str) -> Result<String, String> {
    let Value::Object(args) = json!({ "url": url }) else {
        unreachable!("it is an object")
    };
    tool.call(args, ctx)
        .await
        .map(|output| output.content.text())
        .map_err(|error| error.to_string())
}

#[tokio::test]
async fn web_fetch_never_calls_local_addresses() {
    let trap = Trap::set();
    let (tool, ctx) = (reader(&[]), tool_context());
    let urls = corpus(trap.port());
    assert!(urls.len() >= 200, "{}", urls.len());
    let client = GuardedClient::new(
        Egress::default(),
        Arc::new(Rebinding::default()),
        |client| client,
    )
    .unwrap();
    let mut sent = 0;
    for url in &urls {
        let answer = read(&*tool, &ctx, url).await;
        assert!(
            answer
                .as_ref()
                .is_err_and(|error| error.starts_with("Error: ")),
            "{url:?}: {answer:?}"
        );
        // Bypasses the checks of the tool: any port, and the address as the library parses it.
        if let Ok(request) = client
            .read(url)
            .and_then(|url| client.request(reqwest::Method::GET, url))
        {
            assert!(request.send().await.is_err(), "{url:?}");
            sent += 1;
        }
        assert!(client.resolve(url).await.is_err(), "{url:?}");
        trap.assert_empty(url);
    }
    println!(
        "{} addresses, {sent} of them refused only at the name lookup; no connection",
        urls.len()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_never_reach_local_addresses() {
    let trap = Trap::set();
    let urls: Vec<String> = corpus(trap.port())
        .into_iter()
        .filter(|url| !url.contains(|c: char| c.is_control()))
        .collect();
    assert!(urls.len() >= 200, "{}", urls.len());
    let page = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = page.local_addr().unwrap().port();
    let (tool, ctx) = (reader(&["page.test"]), tool_context());
    let redirects = urls.clone();
    let serving = std::thread::spawn(move || {
        let mut left = redirects.iter();
        let mut asked = 0;
        // A relative address leads to this page again, which then answers without content.
        while let Ok((mut stream, _)) = page.accept() {
            let (mut request, mut piece) = (Vec::new(), [0; 1_024]);
            while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                match stream.read(&mut piece) {
                    Ok(read @ 1..) => request.extend(&piece[..read]),
                    _ => break,
                }
            }
            let answer = match request.starts_with(b"GET /begin ") {
                _ if request.starts_with(b"GET /stop ") => return asked,
                true => format!(
                    "HTTP/1.1 302 Found\r\nlocation: {}\r\n",
                    left.next().expect("one for each")
                ),
                false => "HTTP/1.1 404 Not Found\r\n".to_owned(),
            };
            asked += usize::from(request.starts_with(b"GET /begin "));
            let _sent = stream.write_all(
                format!("{answer}content-length: 0\r\nconnection: close\r\n\r\n").as_bytes(),
            );
        }
        asked
    });
    for url in &urls {
        let answer = read(&*tool, &ctx, &format!("http://page.test:{port}/begin")).await;
        assert!(
            answer
                .as_ref()
                .is_err_and(|error| error.starts_with("Error: ")),
            "{url:?}: {answer:?}"
        );
        trap.assert_empty(url);
    }
    let _broken_off = read(&*tool, &ctx, &format!("http://page.test:{port}/stop")).await;
    assert_eq!(serving.join().unwrap(), urls.len(), "each was redirected");
    println!("{} redirects; no connection", urls.len());
}

#[tokio::test]
#[ignore = "needs bubblewrap; make test-external runs it"]
async fn sandbox_without_network_reaches_no_address() {
    let trap = Trap::set();
    let base = tempfile::tempdir().unwrap();
    let sandbox = marking_sandbox(base.path(), CommandLimits::default()).await;
    let dirs = dirs_of(&base.path().join("home"), "t1");
    let hosts: Vec<String> = HOSTS
        .iter()
        .filter(|host| host.is_ascii())
        .map(|host| format!("'{}'", host.trim_matches(['[', ']'])))
        .collect();
    let far = "8.8.8.8 1.1.1.1 192.0.2.1 172.17.0.1 10.0.0.1 10.0.2.2 192.168.1.1 2606:4700:4700::1111 255.255.255.255 224.0.0.1";
    let command = format!(
        "for h in {} {far}; do for p in {} 53 80; do for way in tcp udp; do\n\
         (exec 3<>/dev/$way/$h/$p && echo secret >&3 && [ $way = tcp ] && echo ESCAPED $h) 2>/dev/null; tried=$((tried + 1))\n\
         done; done; done; echo $tried; wc -l </proc/net/route",
        hosts.join(" "),
        trap.port()
    );
    let mut transcript = Transcript::with_limit(100_000);
    let request = CommandRequest {
        dirs: &dirs,
        shelf: &SkillMounts::default(),
        command: &command,
        time_limit: Duration::from_secs(120),
    };
    sandbox.run(request, &mut transcript).await.unwrap();
    let out = transcript.out();
    let (tried, routes) = out
        .trim()
        .split_once('\n')
        .unwrap_or_else(|| panic!("{out} {}", transcript.err()));
    assert!(
        tried.parse::<usize>().unwrap() >= 200 && !out.contains("ESCAPED"),
        "{out}"
    );
    assert!(
        routes.trim().parse::<usize>().unwrap() <= 1,
        "there is a route: {out}"
    );
    trap.assert_empty("a command");
    println!("{tried} attempts; no connection");
}

//! DNS rebinding over real sockets.

use parking_lot::Mutex;
use tokio::net::TcpListener;

use super::*;

/// Resolver that returns the first answer once and then the second.
#[derive(Debug)]
struct ChangingLookup(Mutex<Vec<Vec<IpAddr>>>);

#[async_trait]
impl Lookup for ChangingLookup {
    async fn lookup(&self, _host: &str) -> Vec<IpAddr> {
        let mut answers = self.0.lock();
        if answers.len() > 1 {
            answers.remove(0)
        } else {
            answers[0].clone()
        }
    }
}

fn changing_lookup(answers: &[&[&str]]) -> Arc<ChangingLookup> {
    let addresses = |texts: &&[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    Arc::new(ChangingLookup(Mutex::new(
        answers.iter().map(addresses).collect(),
    )))
}

/// Returns a listener that must get no connection, and its port.
fn forbidden_listener() -> (std::net::TcpListener, u16) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

fn got_no_connection(listener: &std::net::TcpListener) -> bool {
    listener
        .accept()
        .is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

fn client(egress: Egress, lookup: Arc<ChangingLookup>) -> GuardedClient {
    GuardedClient::new(egress, lookup, |client| {
        client.connect_timeout(Duration::from_secs(20))
    })
    .unwrap()
}

#[tokio::test]
async fn name_that_resolves_inside_at_call_time_is_refused() {
    let (listener, port) = forbidden_listener();
    let url = format!("http://rebinding.test:{port}/");
    for answers in [
        &[&["127.0.0.1"][..]][..],
        &[&["93.184.216.34", "127.0.0.1"]],
        &[&["::ffff:127.0.0.1"]],
        &[&["::1", "fe80::1"]],
    ] {
        let client = client(Egress::default(), changing_lookup(answers));
        let error = client
            .request(Method::GET, client.read(&url).unwrap())
            .unwrap()
            .send()
            .await
            .unwrap_err();
        assert_eq!(
            forbidden(&error),
            Some(&Forbidden::Private("rebinding.test".to_owned())),
            "{error:?}"
        );
    }
    assert!(got_no_connection(&listener));
}

#[tokio::test]
async fn earlier_lookup_does_not_authorize_later_call() {
    let (listener, port) = forbidden_listener();
    let client = client(
        Egress::default(),
        changing_lookup(&[&["93.184.216.34"], &["127.0.0.1"]]),
    );
    let url = client
        .resolve(&format!("http://rebinding.test:{port}/"))
        .await
        .unwrap();
    let error = client
        .request(Method::GET, url)
        .unwrap()
        .send()
        .await
        .unwrap_err();
    assert!(
        matches!(forbidden(&error), Some(Forbidden::Private(_))),
        "{error:?}"
    );
    assert!(got_no_connection(&listener));
}

#[tokio::test]
async fn connection_uses_the_checked_address() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let egress = Egress {
        hosts: vec!["wiki.corp".to_owned()],
        ..Egress::default()
    };
    // A second lookup would return no address.
    let client = client(egress, changing_lookup(&[&["127.0.0.1"], &[]]));
    let request = client
        .request(
            Method::GET,
            client.read(&format!("http://wiki.corp:{port}/")).unwrap(),
        )
        .unwrap();
    tokio::select! {
        accepted = listener.accept() => assert!(accepted.is_ok()),
        sent = request.send() => panic!("no server has answered: {sent:?}"),
    }
}

#[tokio::test]
async fn unknown_and_forbidden_names_give_different_errors() {
    let client = client(Egress::default(), changing_lookup(&[&[]]));
    assert_eq!(
        client.resolve("http://nobody.test/").await,
        Err(Forbidden::Unknown("nobody.test".to_owned()))
    );
    let error = client
        .request(Method::GET, client.read("http://nobody.test/").unwrap())
        .unwrap()
        .send()
        .await
        .unwrap_err();
    assert_eq!(
        forbidden(&error),
        Some(&Forbidden::Unknown("nobody.test".to_owned()))
    );
}

#[tokio::test]
async fn abandoned_lookup_holds_its_permit_until_done() {
    let permits = Arc::new(Semaphore::new(1));
    let (release, released) = std::sync::mpsc::channel::<()>();
    assert_eq!(
        run_blocking_within(&permits, Duration::from_millis(1), move || released
            .recv()
            .is_ok())
        .await,
        None,
        "too late"
    );
    assert_eq!(
        run_blocking_within(&permits, Duration::from_millis(1), || "found").await,
        None,
        "no permit is free"
    );
    release.send(()).unwrap();
    assert_eq!(
        run_blocking_within(&permits, Duration::from_secs(60), || "found").await,
        Some("found")
    );
}

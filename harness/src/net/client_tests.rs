//! Names that change their meaning, over real sockets.

use parking_lot::Mutex;
use tokio::net::TcpListener;

use super::*;

/// Gives the first answer once, and the second from then on.
#[derive(Debug)]
struct Turning(Mutex<Vec<Vec<IpAddr>>>);

#[async_trait]
impl Lookup for Turning {
    async fn lookup(&self, _host: &str) -> Vec<IpAddr> {
        let mut answers = self.0.lock();
        if answers.len() > 1 {
            answers.remove(0)
        } else {
            answers[0].clone()
        }
    }
}

fn turning(answers: &[&[&str]]) -> Arc<Turning> {
    let addresses = |texts: &&[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    Arc::new(Turning(Mutex::new(answers.iter().map(addresses).collect())))
}

/// A listener nobody must call, and its port.
fn forbidden_ground() -> (std::net::TcpListener, u16) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

fn nobody_came(listener: &std::net::TcpListener) -> bool {
    listener
        .accept()
        .is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

fn client(egress: Egress, lookup: Arc<Turning>) -> GuardedClient {
    GuardedClient::new(egress, lookup, |client| {
        client.connect_timeout(Duration::from_secs(20))
    })
    .unwrap()
}

#[tokio::test]
async fn a_name_that_means_home_at_the_moment_of_the_call_is_not_called() {
    let (listener, port) = forbidden_ground();
    let url = format!("http://rebinding.test:{port}/");
    for answers in [
        &[&["127.0.0.1"][..]][..],
        &[&["93.184.216.34", "127.0.0.1"]],
        &[&["::ffff:127.0.0.1"]],
        &[&["::1", "fe80::1"]],
    ] {
        let client = client(Egress::default(), turning(answers));
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
    assert!(nobody_came(&listener));
}

#[tokio::test]
async fn what_a_name_meant_when_it_was_checked_does_not_count_when_it_is_called() {
    let (listener, port) = forbidden_ground();
    let client = client(
        Egress::default(),
        turning(&[&["93.184.216.34"], &["127.0.0.1"]]),
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
    assert!(nobody_came(&listener));
}

#[tokio::test]
async fn a_connection_goes_to_the_address_that_was_judged() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let egress = Egress {
        hosts: vec!["wiki.corp".to_owned()],
        ..Egress::default()
    };
    // Were it resolved once more, it would be found nowhere.
    let client = client(egress, turning(&[&["127.0.0.1"], &[]]));
    let request = client
        .request(
            Method::GET,
            client.read(&format!("http://wiki.corp:{port}/")).unwrap(),
        )
        .unwrap();
    tokio::select! {
        accepted = listener.accept() => assert!(accepted.is_ok()),
        sent = request.send() => panic!("nobody has answered: {sent:?}"),
    }
}

#[tokio::test]
async fn unknown_names_are_told_apart_from_forbidden_ones() {
    let client = client(Egress::default(), turning(&[&[]]));
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
async fn a_lookup_that_nobody_waits_for_any_more_keeps_its_place_until_it_is_done() {
    let places = Arc::new(Semaphore::new(1));
    let (release, held) = std::sync::mpsc::channel::<()>();
    assert_eq!(
        within(&places, Duration::from_millis(1), move || held
            .recv()
            .is_ok())
        .await,
        None,
        "too late"
    );
    assert_eq!(
        within(&places, Duration::from_millis(1), || "found").await,
        None,
        "no place is free"
    );
    release.send(()).unwrap();
    assert_eq!(
        within(&places, Duration::from_secs(60), || "found").await,
        Some("found")
    );
}

//! Tests of direct fetches over real sockets, with host names that the test resolves.

use std::net::IpAddr;
use std::sync::Arc;

use super::super::tests::{Fake, Reply};
use super::*;
use crate::net::{Egress, Lookup, Ports};

/// Resolver that knows only `*.test`.
#[derive(Debug)]
struct TestResolver;

#[async_trait]
impl Lookup for TestResolver {
    async fn lookup(&self, host: &str) -> Vec<IpAddr> {
        if host.ends_with(".test") {
            vec![[127, 0, 0, 1].into()]
        } else {
            Vec::new()
        }
    }
}

/// Reader that may connect to this machine as `page.test` only.
fn reader() -> Direct {
    let egress = Egress {
        allow_private: false,
        hosts: vec!["page.test".to_owned()],
        ports: Ports::Web,
    };
    Direct {
        client: GuardedClient::new(egress, Arc::new(TestResolver), |client| client).unwrap(),
        limit: Duration::from_secs(60),
    }
}

async fn read(fake: &Fake, path: &str) -> Result<Page, String> {
    reader()
        .read(&fake.url_at("page.test", path))
        .await
        .map_err(|error| error.to_string())
}

#[tokio::test]
async fn pages_texts_and_data_are_read_by_type() {
    let html = "<title>Deer</title><body><p>Deer live in <em>woods</em>.";
    let fake = Fake::start([
        Reply::new(200, "text/html; charset=utf-8", html),
        Reply::new(200, "application/json", r#"{"deer": 3}"#),
        Reply::new(200, "text/plain; charset=iso-8859-1", &b"caf\xe9"[..]),
        Reply::new(200, "", html),
    ])
    .await;
    let page = read(&fake, "/").await.unwrap();
    assert!(
        page.title.as_deref() == Some("Deer") && page.text.contains("Deer live in *woods*"),
        "{page:?}"
    );
    let data = Page {
        title: Some("deer.json".to_owned()),
        text: r#"{"deer": 3}"#.to_owned(),
    };
    assert_eq!(read(&fake, "/a/deer.json?x=1").await, Ok(data));
    assert_eq!(
        read(&fake, "/").await.map(|page| (page.title, page.text)),
        Ok((Some("page.test".to_owned()), "café".to_owned()))
    );
    assert!(read(&fake, "/").await.unwrap().text.contains("woods"));
}

#[tokio::test]
async fn unreadable_content_is_an_error() {
    let fake = Fake::start([
        Reply::new(404, "text/html", "gone"),
        Reply::new(200, "application/pdf", "%PDF-1.7"),
        Reply::new(200, "image/png", &b"\x89PNG"[..]),
        Reply::new(200, "", &b"\x00\x01\x02"[..]),
        Reply::new(204, "text/html", ""),
    ])
    .await;
    for (path, says) in [
        ("/a", "404"),
        ("/b", "application/pdf"),
        ("/c", "image/png"),
        ("/d", "no known kind"),
        ("/e", "204"),
    ] {
        let error = read(&fake, path).await.unwrap_err();
        assert!(
            error.starts_with("Error: ") && error.contains(says),
            "{path}: {error}"
        );
    }
    for address in [
        "ftp://page.test/",
        "http://127.0.0.1/",
        "page.test",
        "http://ann:pw@page.test/",
    ] {
        let error = reader().read(address).await.unwrap_err().to_string();
        assert!(error.contains("cannot be read"), "{address}: {error}");
    }
}

#[tokio::test]
async fn redirects_follow_permitted_addresses_only() {
    let fake = Fake::start([
        Reply::redirect("/next?a=b"),
        Reply::new(200, "text/plain", "there"),
    ])
    .await;
    assert_eq!(
        read(&fake, "/").await.map(|page| page.text),
        Ok("there".to_owned())
    );
    assert!(
        fake.requests()[1].head.starts_with("GET /next?a=b "),
        "{:?}",
        fake.requests()
    );

    let secret = Fake::start([Reply::new(200, "text/plain", "secret")]).await;
    let port = secret.port();
    for to in [
        format!("http://127.0.0.1:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("http://0x7f.1:{port}/"),
        format!("http://[::1]:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        // The name resolves, but to the loopback address.
        format!("http://other.test:{port}/"),
        format!("//other.test:{port}/"),
        format!("http://ann@page.test:{port}/"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "gopher://page.test/".to_owned(),
        "http://[".to_owned(),
    ] {
        let fake = Fake::start([Reply::redirect(&to)]).await;
        let error = read(&fake, "/").await.unwrap_err();
        assert!(error.contains("cannot be read"), "{to}: {error}");
    }
    assert!(secret.requests().is_empty());

    let circle = Fake::start([Reply::redirect("/")]).await;
    assert!(
        read(&circle, "/")
            .await
            .unwrap_err()
            .contains("more than 5 times")
    );
    assert_eq!(circle.requests().len(), 6);
}

#[tokio::test]
async fn endless_page_is_cut_and_silent_server_times_out() {
    let fake = Fake::start([
        Reply::new(200, "text/plain", "x".repeat(MAX_PAGE_BYTES + 9_999)),
        Reply::unresponsive(),
    ])
    .await;
    assert_eq!(
        read(&fake, "/").await.map(|page| page.text.len()),
        Ok(MAX_PAGE_BYTES)
    );
    let hasty = Direct {
        limit: Duration::from_millis(50),
        ..reader()
    };
    assert!(
        hasty
            .read(&fake.url_at("page.test", "/"))
            .await
            .unwrap_err()
            .to_string()
            .contains("took longer")
    );
}

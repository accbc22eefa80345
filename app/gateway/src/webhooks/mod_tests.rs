//! Tests of webhooks.

use super::*;

#[test]
fn only_public_http_addresses_are_accepted() {
    let strict = WebhookPolicy::default();
    for fine in [
        "https://example.com/hook",
        "http://93.184.216.34:8080/x?y=1",
        "https://[2606:2800:220:1::1]/",
        "http://name.test",
    ] {
        assert!(strict.read(fine).is_ok(), "{fine}");
    }
    for bad in [
        "",
        "not a url",
        "/relative",
        "ftp://example.com",
        "http://",
        "file:///etc/passwd",
        "javascript:alert(1)",
    ] {
        assert_eq!(
            strict.read(bad),
            Err(ForbiddenUrl::NoHost(String::new())),
            "{bad}"
        );
    }
    assert_eq!(
        strict.read("https://ann:pw@example.com"),
        Err(ForbiddenUrl::Credentials)
    );
    for private in [
        "http://127.0.0.1",
        "http://2130706433/",
        "http://0x7f.1",
        "http://0",
        "http://10.1.2.3",
        "http://169.254.169.254/latest",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[fd00::1]/",
        "http://[64:ff9b::7f00:1]/",
    ] {
        assert!(
            matches!(strict.read(private), Err(ForbiddenUrl::Private(_))),
            "{private}"
        );
        assert!(
            WebhookPolicy {
                allow_private: true
            }
            .read(private)
            .is_ok(),
            "{private}"
        );
    }
}

#[tokio::test]
async fn name_that_resolves_to_loopback_is_rejected() {
    let strict = WebhookPolicy::default();
    assert_eq!(
        strict.resolve("http://localhost:1/").await,
        Err(ForbiddenUrl::Private("localhost".to_owned()))
    );
    assert_eq!(
        strict
            .check("http://localhost/")
            .await
            .map_err(|error| error.status(crate::dialect::Dialect::Platform)),
        Err(axum::http::StatusCode::UNPROCESSABLE_ENTITY)
    );
    assert_eq!(
        WebhookPolicy {
            allow_private: true
        }
        .resolve("http://localhost:1/")
        .await,
        Ok(())
    );
}

//! Tables of endpoints and handshakes.

use serde_json::json;

use super::*;

fn endpoint(status: u16, body: &Value) -> Result<SocketAddress, PlatformError> {
    address_of(
        StatusCode::from_u16(status).unwrap(),
        &HeaderMap::new(),
        body.to_string().as_bytes(),
    )
}

fn answer(url: &str, config: &Value) -> Value {
    json!({"code": 0, "msg": "ok", "data": {"URL": url, "ClientConfig": config}})
}

#[test]
fn address_service_and_interval_are_read() {
    let url = "wss://host/ws/v2?device_id=7&service_id=3&ticket=T";
    let address = endpoint(200, &answer(url, &json!({"PingInterval": 90}))).unwrap();
    assert_eq!((address.service, address.ping.as_secs()), (3, 90));
    assert_eq!(address.url.as_str(), url);
    for (config, seconds) in [
        (json!(null), 120),
        (json!({"PingInterval": 0}), 1),
        (json!({"PingInterval": -5}), 1),
        (json!({"PingInterval": "30"}), 30),
        (json!({"PingInterval": 1e18}), 120),
        (json!({"PingInterval": i64::MAX}), 600),
    ] {
        let address = endpoint(200, &answer(url, &config)).unwrap();
        assert_eq!(address.ping.as_secs(), seconds, "{config}");
    }
}

#[test]
fn endpoint_code_decides_about_reconnection() {
    let body = |code: i64| json!({"code": code, "msg": "words"});
    for code in [1, 1_000_040_343] {
        let error = endpoint(200, &body(code));
        assert!(
            matches!(error, Err(PlatformError::Unavailable(_))),
            "{code}"
        );
    }
    for code in [403, 514, 1_000_040_344, 1_000_040_345] {
        let error = endpoint(200, &body(code));
        assert!(matches!(error, Err(PlatformError::Rejected(_))), "{code}");
    }
    let error = endpoint(502, &body(514));
    assert!(matches!(error, Err(PlatformError::Unavailable(_))));
    let error = endpoint(429, &body(99_991_400));
    assert!(matches!(error, Err(PlatformError::RateLimited { .. })));
}

#[test]
fn address_without_tls_is_refused_except_on_loopback() {
    for (url, is_accepted) in [
        ("ws://127.0.0.1:8/ws?service_id=1", true),
        ("ws://[::1]:8/ws", true),
        ("ws://localhost/ws", true),
        ("ws://example.com/ws", false),
        ("ftp://example.com/ws", false),
        ("not an address", false),
        ("wss://example.com/ws", true),
    ] {
        let result = endpoint(200, &answer(url, &Value::Null));
        assert_eq!(result.is_ok(), is_accepted, "{url}");
    }
    assert!(endpoint(200, &json!({"code": 0, "data": 5})).is_err());
}

#[test]
fn refused_handshake_is_final_for_two_reasons_only() {
    let refused = |status: &'static str, code: &'static str| {
        let mut headers = HeaderMap::new();
        headers.insert("handshake-status", status.parse().unwrap());
        headers.insert("handshake-msg", "words".parse().unwrap());
        headers.insert("handshake-autherrcode", code.parse().unwrap());
        let status = StatusCode::FORBIDDEN;
        open_error(OpenError::Refused(RefusedUpgrade { status, headers }))
    };
    for (status, code, is_final) in [
        ("514", "1000040350", true),
        ("403", "0", true),
        ("514", "1000040351", false),
        ("500", "0", false),
    ] {
        let error = refused(status, code);
        assert_eq!(
            matches!(error, PlatformError::Rejected(_)),
            is_final,
            "{status} {code}"
        );
    }
    let bare = RefusedUpgrade {
        status: StatusCode::BAD_GATEWAY,
        headers: HeaderMap::new(),
    };
    let error = open_error(OpenError::Refused(bare));
    assert!(matches!(error, PlatformError::Unavailable(_)));
}

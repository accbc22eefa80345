//! Tests of broken, silent and endless answers, and of the errors of a provider.

use super::*;

#[tokio::test]
async fn broken_stream_returns_chunks_then_error() {
    let garbled = format!("{HEAD}{HELLO}data: {{nope\n\n");
    let refused = format!(
        "{HEAD}{HELLO}data: {{\"error\":{{\"message\":\"Overloaded\",\"type\":\"overloaded_error\"}}}}\n\n"
    );
    for (stream, kind, expected) in [
        (format!("{HEAD}{HELLO}"), ModelErrorKind::Transient, "cut"),
        (garbled, ModelErrorKind::Transient, "not valid"),
        (refused, ModelErrorKind::Busy, "Overloaded"),
    ] {
        let (text, error) = call_model(Reply::Send(stream), json!({})).await;
        let error = error.unwrap();
        assert_eq!((text.as_str(), error.kind), ("hello", kind));
        assert!(error.message.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn endless_stream_fails_at_size_limit() {
    let (address, _events, _tasks) =
        server(Reply::Send(format!("{HEAD}{}{END}", HELLO.repeat(100)))).await;
    let mut model = model(&address, json!({}));
    Arc::get_mut(&mut model.caller)
        .unwrap()
        .endpoint
        .limits
        .streamed = 1000;
    let items: Vec<_> = match model.stream(request()).await {
        Ok(stream) => stream.collect().await,
        Err(error) => vec![Err(error)],
    };
    let error = items.into_iter().find_map(Result::err).unwrap();
    assert!(
        error.kind == ModelErrorKind::Transient && error.message.contains("longer than"),
        "{error}"
    );
}

#[tokio::test]
async fn silence_times_out_before_and_within_the_stream() {
    let (_, error) = call_model(Reply::SendAndHang(String::new()), json!({"timeout": 0.05})).await;
    assert_eq!(error.map(|error| error.kind), Some(ModelErrorKind::Stalled));
    let idle_timeout = Reply::SendAndHang(format!("{HEAD}{HELLO}: still here\n\n"));
    let (text, error) = call_model(idle_timeout, json!({"stream_chunk_timeout": 0.05})).await;
    assert_eq!(
        (text.as_str(), error.map(|error| error.kind)),
        ("hello", Some(ModelErrorKind::Stalled))
    );
}

#[tokio::test]
async fn error_has_kind_status_delay_and_no_key() {
    let error_body = |code: &str, message: &str| {
        json!({"error": {"message": message, "type": code, "code": null}}).to_string()
    };
    let table = [
        (
            "400 Bad",
            "",
            error_body("invalid_request_error", "too long"),
            ModelErrorKind::BadRequest,
            None,
            "too long",
        ),
        (
            "401 No",
            "",
            error_body("authentication_error", "bad key sk-canary"),
            ModelErrorKind::Auth,
            None,
            "bad key ***",
        ),
        (
            "429 Slow",
            "retry-after: 2\r\n",
            error_body("rate_limit_error", "slow"),
            ModelErrorKind::Transient,
            Some(2000),
            "slow",
        ),
        (
            "429 Slow",
            "retry-after-ms: 40\r\n",
            error_body("insufficient_quota", "out"),
            ModelErrorKind::Quota,
            Some(40),
            "out",
        ),
        (
            "429 Slow",
            "retry-after: 3\r\n",
            error_body("limit", "quota for this minute"),
            ModelErrorKind::Transient,
            Some(3000),
            "minute",
        ),
        (
            "307 Moved",
            "location: /elsewhere\r\n",
            String::new(),
            ModelErrorKind::Config,
            None,
            "HTTP status 307",
        ),
        (
            "500 Oops",
            "",
            "<html>oops</html>".to_owned(),
            ModelErrorKind::Transient,
            None,
            "oops",
        ),
        (
            "503 Busy",
            "",
            String::new(),
            ModelErrorKind::Transient,
            None,
            "HTTP status 503",
        ),
    ];
    for (status, headers, body, kind, wait, expected) in table {
        let (_, error) = call_model(http_reply(status, headers, &body), json!({})).await;
        let error = error.unwrap();
        assert_eq!(
            (error.kind, error.retry_after.map(|wait| wait.as_millis())),
            (kind, wait),
            "{status}"
        );
        assert_eq!(
            error.status.map(|code| code.to_string()).as_deref(),
            status.get(..3)
        );
        assert!(
            error.to_string().contains(expected) && error.to_string().contains("\"entry\""),
            "{error}"
        );
    }
}

#[tokio::test]
async fn unreachable_server_and_web_page_give_clear_errors() {
    // Bound during the test but not listening, so that no other process can listen at this port.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let closed = socket.local_addr().unwrap();
    let error = model(&format!("http://{closed}/v1?token=sk-other"), json!({}))
        .stream(request())
        .await
        .err()
        .unwrap();
    assert_eq!(error.kind, ModelErrorKind::Transient);
    assert!(
        error.message.contains("connect") && !error.message.contains("sk-other"),
        "{error}"
    );
    let (_, error) = call_model(
        http_reply("200 OK", "content-type: text/html\r\n", "<html>"),
        json!({}),
    )
    .await;
    assert!(error.is_some_and(
        |error| error.kind == ModelErrorKind::Config && error.message.contains("base_url")
    ));
}

//! Tests that errors of servers contain neither response texts nor addresses.

use rmcp::model::{ClientRequest, PingRequest, RequestId};

use super::*;

#[test]
fn errors_omit_response_text() {
    let failure = redacted(StreamableHttpError::UnexpectedServerResponse(
        "HTTP 403 Forbidden: you sent canary".into(),
    ));
    assert_eq!(
        failure.to_string(),
        "unexpected server response: HTTP 403 Forbidden"
    );
}

#[tokio::test]
async fn errors_omit_the_address() {
    let client = RedactingClient(super::super::http::client().unwrap());
    let address = || Arc::<str>::from("http://127.0.0.1:9/mcp?key=canary");
    let session = || Some(Arc::<str>::from("s"));
    let message = || {
        ClientJsonRpcMessage::request(
            ClientRequest::PingRequest(PingRequest::default()),
            RequestId::Number(1),
        )
    };
    let errors = [
        format!(
            "{:?}",
            client
                .post_message(address(), message(), None, None, Headers::new())
                .await
                .unwrap_err()
        ),
        format!(
            "{:?}",
            client
                .post_message_with_max_sse_event_size(
                    address(),
                    message(),
                    None,
                    None,
                    Headers::new(),
                    9
                )
                .await
                .unwrap_err()
        ),
        format!(
            "{:?}",
            client
                .delete_session(address(), "s".into(), None, Headers::new())
                .await
                .unwrap_err()
        ),
        format!(
            "{:?}",
            client
                .get_stream(address(), session(), None, None, Headers::new())
                .await
                .err()
        ),
        format!(
            "{:?}",
            client
                .get_stream_with_max_sse_event_size(
                    address(),
                    session(),
                    None,
                    None,
                    Headers::new(),
                    9
                )
                .await
                .err()
        ),
    ];
    assert!(
        errors
            .iter()
            .all(|errors| errors.contains("Connect") && !errors.contains("canary")),
        "{errors:#?}"
    );
}

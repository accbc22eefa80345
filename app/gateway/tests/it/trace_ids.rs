//! `X-Trace-Id` of responses.

use deerflow_gateway::{GatewayState, Observability};

use crate::support::Gateway;

fn with_trace_ids() -> Gateway {
    Gateway::new().changed(|state| GatewayState {
        observability: Observability {
            trace_ids: true,
            ..state.observability
        },
        ..state
    })
}

#[tokio::test]
async fn each_response_has_the_clients_trace_id_or_a_new_one() {
    let gateway = with_trace_ids();
    for path in ["/api/models", "/health", "/nowhere"] {
        let given = [("x-trace-id", "req-1.a:b_c")];
        let response = gateway.raw("GET", path, "", &given).await;
        assert_eq!(response.header("x-trace-id"), "req-1.a:b_c", "{path}");
    }
    let too_long = "a".repeat(129);
    for invalid in ["", "a b", "<x>", too_long.as_str()] {
        let response = gateway
            .raw("GET", "/api/models", "", &[("x-trace-id", invalid)])
            .await;
        let id = response.header("x-trace-id");
        assert_eq!(id.len(), 32, "{invalid:?}: {id}");
        assert!(id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    }
    let [first, second] = [gateway.get("/health").await, gateway.get("/health").await];
    assert_ne!(first.header("x-trace-id"), second.header("x-trace-id"));
}

#[tokio::test]
async fn responses_have_no_trace_id_by_default() {
    let given = [("x-trace-id", "req-1")];
    let response = Gateway::new().raw("GET", "/health", "", &given).await;
    assert_eq!(response.header("x-trace-id"), "");
}

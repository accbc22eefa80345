//! Tests of servers over HTTP, in both transports: sessions, streams and failures.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::http_kit::{Request, Response, Server, greeting, result, valid_response};
use super::test_kit::TestToolbox;

fn entry(server: &Server) -> Value {
    json!({"type": "http", "url": format!("{}/mcp", server.base), "headers": {"X-Key": "canary"}, "tool_call_timeout": 60, "session_init_timeout": 60})
}

#[tokio::test]
async fn requests_carry_headers_and_calls_use_own_sessions() {
    let server = Server::start(|request| match request.method().as_str() {
        "initialize" => Response::Status(
            200,
            "content-type: application/json\r\nmcp-session-id: s1\r\n",
            result(request, greeting()),
        ),
        _ => valid_response(request),
    })
    .await;
    let fixture = TestToolbox::with(json!({"h": entry(&server)}));
    assert_eq!(
        fixture
            .call("h_echo", json!({"a": 1}))
            .await
            .unwrap()
            .content
            .text(),
        r#"{"a":1}"#
    );
    assert_eq!(
        fixture
            .call("h_echo", json!({"a": 2}))
            .await
            .unwrap()
            .content
            .text(),
        r#"{"a":2}"#
    );
    assert_eq!(
        (
            server.count("initialize"),
            server.count("tools/list"),
            server.count("tools/call")
        ),
        (3, 1, 2)
    );
    let requests = server.requests.lock().clone();
    assert!(
        requests
            .iter()
            .all(|request| request.head.contains("x-key: canary"))
    );
    assert!(
        requests
            .iter()
            .filter(|request| request.method().starts_with("tools/"))
            .all(|request| request.head.contains("mcp-session-id: s1"))
    );
    let key = requests
        .iter()
        .find(|request| request.method() == "tools/call")
        .unwrap()
        .json();
    assert_eq!(key["params"]["_meta"]["io.deerflow/idempotencyKey"], "k");
}

#[tokio::test]
async fn call_accepts_event_stream_response() {
    let server = Server::start(|request| match request.method().as_str() {
        "tools/call" => {
            let note = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}});
            let reply = result(request, json!({"content": [{"type": "text", "text": "streamed"}]}));
            Response::Raw(format!(
                "HTTP/1.1 200 X\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\ndata: {note}\n\ndata: {reply}\n\n"
            ))
        }
        _ => valid_response(request),
    })
    .await;
    let fixture = TestToolbox::with(json!({"h": entry(&server)}));
    assert_eq!(
        fixture
            .call("h_echo", json!({}))
            .await
            .unwrap()
            .content
            .text(),
        "streamed"
    );
}

#[tokio::test]
async fn call_errors_are_classified_without_addresses() {
    /// Expected error, call timeout in seconds, and the server's response.
    type Case = (&'static str, u64, fn(&Request) -> Response);
    let cases: [Case; 8] = [
        ("status 503", 60, |_| {
            Response::Status(503, "", "canary down".to_owned())
        }),
        ("status 401", 60, |_| {
            Response::Status(401, "www-authenticate: Bearer\r\n", String::new())
        }),
        ("was interrupted", 60, |_| {
            Response::Raw(
                "HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"
                    .to_owned(),
            )
        }),
        ("protocol", 60, |_| {
            Response::Status(200, "content-type: text/html\r\n", "<html>".to_owned())
        }),
        ("did not answer within 2 s", 2, |_| Response::Hang),
        ("status 307", 60, |_| {
            Response::Status(307, "location: http://127.0.0.1:9/steal\r\n", String::new())
        }),
        ("status 401", 60, |_| {
            Response::Status(401, "", "canary".to_owned())
        }),
        ("status 404", 60, |_| {
            Response::Status(404, "", "canary".to_owned())
        }),
    ];
    for (expected, limit, answer) in cases {
        let server = Server::start(move |request| {
            if request.method() == "tools/call" {
                answer(request)
            } else {
                valid_response(request)
            }
        })
        .await;
        let mut entry = entry(&server);
        entry["tool_call_timeout"] = limit.into();
        let fixture = TestToolbox::with(json!({"h": entry}));
        let error = fixture.call("h_echo", json!({})).await.unwrap_err();
        assert!(
            error.starts_with("Error: the MCP server h could not do this:")
                && error.contains(expected),
            "{expected}: {error}"
        );
        assert!(
            !error.contains("canary") && !error.contains("127.0.0.1"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn expired_session_is_reported_as_status_404() {
    let server = Server::start(|request| match request.method().as_str() {
        "initialize" => Response::Status(
            200,
            "content-type: application/json\r\nmcp-session-id: s1\r\n",
            result(request, greeting()),
        ),
        "tools/call" => Response::Status(404, "", String::new()),
        _ => valid_response(request),
    })
    .await;
    let fixture = TestToolbox::with(json!({"h": entry(&server)}));
    let error = fixture.call("h_echo", json!({})).await.unwrap_err();
    assert_eq!(
        error,
        "Error: the MCP server h could not do this: the server answered with status 404."
    );
}

#[tokio::test]
async fn unreachable_servers_have_no_tools() {
    let hangs = Server::start(|_| Response::Hang).await;
    let malformed = Server::start(|request| {
        Response::Status(
            200,
            "content-type: application/json\r\n",
            result(request, json!({"tools": 5})),
        )
    })
    .await;
    let valid = Server::start(valid_response).await;
    let closed = json!({"type": "http", "url": "http://127.0.0.1:9/"});
    let mut hanging = entry(&hangs);
    hanging["session_init_timeout"] = 2.into();
    let fixture = TestToolbox::with(
        json!({"hangs": hanging, "malformed": entry(&malformed), "closed": closed, "valid": entry(&valid)}),
    );
    assert_eq!(fixture.names().await, ["valid_echo"]);
}

#[tokio::test]
async fn endless_tool_list_is_read_up_to_limits() {
    let pages = async |tools: fn() -> Value| {
        let server = Server::start(move |request| match request.method().as_str() {
            "tools/list" => {
                let page = json!({"tools": tools(), "nextCursor": "more"});
                Response::Status(
                    200,
                    "content-type: application/json\r\n",
                    result(request, page),
                )
            }
            _ => valid_response(request),
        })
        .await;
        let names = TestToolbox::with(json!({"h": entry(&server)}))
            .names()
            .await;
        (names.len(), server.count("tools/list"))
    };
    let many = || -> Value {
        (0..400)
            .map(|n| json!({"name": format!("t{n}"), "inputSchema": {}}))
            .collect()
    };
    assert_eq!(pages(many).await, (400, 3), "repeated names are one tool");
    let large =
        || json!([{"name": "large", "description": "x".repeat(6 << 20), "inputSchema": {}}]);
    assert_eq!(pages(large).await, (1, 3));
}

/// Server of the SSE transport: replies to posts arrive on the event stream.
async fn sse_server(address: &'static str) -> Server {
    let stream: Arc<Mutex<Option<UnboundedSender<String>>>> = Arc::default();
    Server::start(move |request| {
        if request.line == "get /sse" {
            let (sender, events) = unbounded_channel();
            sender
                .send(format!("event: endpoint\ndata: {address}\n\n"))
                .unwrap();
            *stream.lock() = Some(sender);
            return Response::Stream(events);
        }
        if let Response::Status(200, _, reply) = valid_response(request) {
            let _gone = stream
                .lock()
                .as_ref()
                .map(|stream| stream.send(format!("event: message\r\ndata: {reply}\r\n\r\n")));
        }
        Response::Status(202, "", "Accepted".to_owned())
    })
    .await
}

#[tokio::test]
async fn sse_sends_headers_only_to_its_origin() {
    let server = sse_server("/messages?id=1").await;
    let sse = |server: &Server| json!({"type": "sse", "url": format!("{}/sse", server.base), "headers": {"X-Key": "canary"}, "session_init_timeout": 60});
    let fixture = TestToolbox::with(json!({"o": sse(&server)}));
    assert_eq!(
        fixture
            .call("o_echo", json!({"a": 1}))
            .await
            .unwrap()
            .content
            .text(),
        r#"{"a":1}"#
    );
    assert!(
        server
            .requests
            .lock()
            .iter()
            .all(|request| request.head.contains("x-key: canary"))
    );
    let hostile = sse_server("http://127.0.0.1:9/steal").await;
    assert_eq!(
        TestToolbox::with(json!({"e": sse(&hostile)})).names().await,
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn sse_flood_ends_the_connection() {
    let small = (
        "data: {}\n\n".repeat(2_000),
        10,
        "10000 unsolicited messages",
    );
    let large = (
        format!(": {}\n\n", "x".repeat(1 << 20)),
        70,
        "64 MiB of unsolicited output",
    );
    for (piece, times, expected) in [small, large] {
        let stream: Arc<Mutex<Option<UnboundedSender<String>>>> = Arc::default();
        let server = Server::start(move |request| {
            if request.line == "get /sse" {
                let (sender, events) = unbounded_channel();
                sender
                    .send("event: endpoint\ndata: /m\n\n".to_owned())
                    .unwrap();
                *stream.lock() = Some(sender);
                return Response::Stream(events);
            }
            let reply = match valid_response(request) {
                Response::Status(200, ..) if request.method() == "tools/call" => {
                    vec![piece.clone(); times]
                }
                Response::Status(200, _, reply) => vec![format!("data: {reply}\n\n")],
                _ => Vec::new(),
            };
            let _gone = stream
                .lock()
                .as_ref()
                .map(|stream| reply.into_iter().try_for_each(|reply| stream.send(reply)));
            Response::Status(202, "", "Accepted".to_owned())
        })
        .await;
        let fixture = TestToolbox::with(
            json!({"o": {"type": "sse", "url": format!("{}/sse", server.base), "tool_call_timeout": 120}}),
        );
        let error = fixture.call("o_echo", json!({})).await.unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

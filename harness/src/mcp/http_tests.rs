//! Servers over HTTP, in both ways: sessions, streams, and what may go wrong.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::http_kit::{Answer, Asked, Server, good, greeting, result};
use super::test_kit::Bench;

fn entry(server: &Server) -> Value {
    json!({"type": "http", "url": format!("{}/mcp", server.base), "headers": {"X-Key": "canary"}, "tool_call_timeout": 60, "session_init_timeout": 60})
}

#[tokio::test]
async fn every_request_carries_the_headers_and_every_call_has_a_session_of_its_own() {
    let server = Server::start(|asked| match asked.method().as_str() {
        "initialize" => Answer::Say(
            200,
            "content-type: application/json\r\nmcp-session-id: s1\r\n",
            result(asked, greeting()),
        ),
        _ => good(asked),
    })
    .await;
    let bench = Bench::with(json!({"h": entry(&server)}));
    assert_eq!(
        bench
            .call("h_echo", json!({"a": 1}))
            .await
            .unwrap()
            .content
            .text(),
        r#"{"a":1}"#
    );
    assert_eq!(
        bench
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
    let asked = server.asked.lock().clone();
    assert!(
        asked
            .iter()
            .all(|asked| asked.head.contains("x-key: canary"))
    );
    assert!(
        asked
            .iter()
            .filter(|asked| asked.method().starts_with("tools/"))
            .all(|asked| asked.head.contains("mcp-session-id: s1"))
    );
    let key = asked
        .iter()
        .find(|asked| asked.method() == "tools/call")
        .unwrap()
        .json();
    assert_eq!(key["params"]["_meta"]["io.deerflow/idempotencyKey"], "k");
}

#[tokio::test]
async fn an_answer_may_come_as_a_stream() {
    let server = Server::start(|asked| match asked.method().as_str() {
        "tools/call" => {
            let note = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}});
            let said = result(asked, json!({"content": [{"type": "text", "text": "streamed"}]}));
            Answer::Raw(format!(
                "HTTP/1.1 200 X\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\ndata: {note}\n\ndata: {said}\n\n"
            ))
        }
        _ => good(asked),
    })
    .await;
    let bench = Bench::with(json!({"h": entry(&server)}));
    assert_eq!(
        bench
            .call("h_echo", json!({}))
            .await
            .unwrap()
            .content
            .text(),
        "streamed"
    );
}

#[tokio::test]
async fn a_call_that_goes_wrong_is_told_in_time_and_tells_no_address() {
    /// What is told, how many seconds a call has, and what the server does.
    type Case = (&'static str, u64, fn(&Asked) -> Answer);
    let cases: [Case; 8] = [
        ("status 503", 60, |_| {
            Answer::Say(503, "", "canary down".to_owned())
        }),
        ("status 401", 60, |_| {
            Answer::Say(401, "www-authenticate: Bearer\r\n", String::new())
        }),
        ("broke off", 60, |_| {
            Answer::Raw(
                "HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"
                    .to_owned(),
            )
        }),
        ("protocol", 60, |_| {
            Answer::Say(200, "content-type: text/html\r\n", "<html>".to_owned())
        }),
        ("did not answer within 2 s", 2, |_| Answer::Hang),
        ("status 307", 60, |_| {
            Answer::Say(307, "location: http://127.0.0.1:9/steal\r\n", String::new())
        }),
        ("status 401", 60, |_| {
            Answer::Say(401, "", "canary".to_owned())
        }),
        ("status 404", 60, |_| {
            Answer::Say(404, "", "canary".to_owned())
        }),
    ];
    for (wanted, limit, answer) in cases {
        let server = Server::start(move |asked| {
            if asked.method() == "tools/call" {
                answer(asked)
            } else {
                good(asked)
            }
        })
        .await;
        let mut entry = entry(&server);
        entry["tool_call_timeout"] = limit.into();
        let bench = Bench::with(json!({"h": entry}));
        let error = bench.call("h_echo", json!({})).await.unwrap_err();
        assert!(
            error.starts_with("Error: the MCP server h could not do this:")
                && error.contains(wanted),
            "{wanted}: {error}"
        );
        assert!(
            !error.contains("canary") && !error.contains("127.0.0.1"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_session_that_its_server_knows_no_more_is_told_by_its_status() {
    let server = Server::start(|asked| match asked.method().as_str() {
        "initialize" => Answer::Say(
            200,
            "content-type: application/json\r\nmcp-session-id: s1\r\n",
            result(asked, greeting()),
        ),
        "tools/call" => Answer::Say(404, "", String::new()),
        _ => good(asked),
    })
    .await;
    let bench = Bench::with(json!({"h": entry(&server)}));
    let error = bench.call("h_echo", json!({})).await.unwrap_err();
    assert_eq!(
        error,
        "Error: the MCP server h could not do this: the server answered with status 404."
    );
}

#[tokio::test]
async fn servers_that_cannot_be_talked_to_have_no_tools() {
    let hangs = Server::start(|_| Answer::Hang).await;
    let lies = Server::start(|asked| {
        Answer::Say(
            200,
            "content-type: application/json\r\n",
            result(asked, json!({"tools": 5})),
        )
    })
    .await;
    let well = Server::start(good).await;
    let closed = json!({"type": "http", "url": "http://127.0.0.1:9/"});
    let mut hanging = entry(&hangs);
    hanging["session_init_timeout"] = 2.into();
    let bench = Bench::with(
        json!({"hangs": hanging, "lies": entry(&lies), "closed": closed, "well": entry(&well)}),
    );
    assert_eq!(bench.names().await, ["well_echo"]);
}

#[tokio::test]
async fn a_list_without_end_is_read_as_far_as_it_is_kept() {
    let pages = async |tools: fn() -> Value| {
        let server = Server::start(move |asked| match asked.method().as_str() {
            "tools/list" => {
                let page = json!({"tools": tools(), "nextCursor": "more"});
                Answer::Say(
                    200,
                    "content-type: application/json\r\n",
                    result(asked, page),
                )
            }
            _ => good(asked),
        })
        .await;
        let names = Bench::with(json!({"h": entry(&server)})).names().await;
        (names.len(), server.count("tools/list"))
    };
    let many = || -> Value {
        (0..400)
            .map(|n| json!({"name": format!("t{n}"), "inputSchema": {}}))
            .collect()
    };
    assert_eq!(
        pages(many).await,
        (400, 3),
        "names that come again are one tool"
    );
    let large =
        || json!([{"name": "large", "description": "x".repeat(6 << 20), "inputSchema": {}}]);
    assert_eq!(pages(large).await, (1, 3));
}

/// A server of the older way: answers to posts come on the stream.
async fn older(address: &'static str) -> Server {
    let stream: Arc<Mutex<Option<UnboundedSender<String>>>> = Arc::default();
    Server::start(move |asked| {
        if asked.line == "get /sse" {
            let (sender, events) = unbounded_channel();
            sender
                .send(format!("event: endpoint\ndata: {address}\n\n"))
                .unwrap();
            *stream.lock() = Some(sender);
            return Answer::Stream(events);
        }
        if let Answer::Say(200, _, said) = good(asked) {
            let _gone = stream
                .lock()
                .as_ref()
                .map(|stream| stream.send(format!("event: message\r\ndata: {said}\r\n\r\n")));
        }
        Answer::Say(202, "", "Accepted".to_owned())
    })
    .await
}

#[tokio::test]
async fn the_older_way_works_and_shows_its_headers_to_no_other_server() {
    let server = older("/messages?id=1").await;
    let sse = |server: &Server| json!({"type": "sse", "url": format!("{}/sse", server.base), "headers": {"X-Key": "canary"}, "session_init_timeout": 60});
    let bench = Bench::with(json!({"o": sse(&server)}));
    assert_eq!(
        bench
            .call("o_echo", json!({"a": 1}))
            .await
            .unwrap()
            .content
            .text(),
        r#"{"a":1}"#
    );
    assert!(
        server
            .asked
            .lock()
            .iter()
            .all(|asked| asked.head.contains("x-key: canary"))
    );
    let evil = older("http://127.0.0.1:9/steal").await;
    assert_eq!(
        Bench::with(json!({"e": sse(&evil)})).names().await,
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn the_older_way_is_given_up_when_it_floods() {
    let small = (
        "data: {}\n\n".repeat(2_000),
        10,
        "10000 messages that nobody asked for",
    );
    let large = (
        format!(": {}\n\n", "x".repeat(1 << 20)),
        70,
        "64 MiB that nobody asked for",
    );
    for (piece, times, wanted) in [small, large] {
        let stream: Arc<Mutex<Option<UnboundedSender<String>>>> = Arc::default();
        let server = Server::start(move |asked| {
            if asked.line == "get /sse" {
                let (sender, events) = unbounded_channel();
                sender
                    .send("event: endpoint\ndata: /m\n\n".to_owned())
                    .unwrap();
                *stream.lock() = Some(sender);
                return Answer::Stream(events);
            }
            let said = match good(asked) {
                Answer::Say(200, ..) if asked.method() == "tools/call" => {
                    vec![piece.clone(); times]
                }
                Answer::Say(200, _, said) => vec![format!("data: {said}\n\n")],
                _ => Vec::new(),
            };
            let _gone = stream
                .lock()
                .as_ref()
                .map(|stream| said.into_iter().try_for_each(|said| stream.send(said)));
            Answer::Say(202, "", "Accepted".to_owned())
        })
        .await;
        let bench = Bench::with(
            json!({"o": {"type": "sse", "url": format!("{}/sse", server.base), "tool_call_timeout": 120}}),
        );
        let error = bench.call("o_echo", json!({})).await.unwrap_err();
        assert!(error.contains(wanted), "{error}");
    }
}

//! The process: malformed input, and a failed start.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::support::{Server, TIMEOUT, run};

#[tokio::test]
async fn malformed_lines_do_not_end_the_process() {
    let mut server = Server::start().await;
    let mut raw = server.raw();
    let null = Value::Null;
    // Once before and once after the initialization.
    for turn in 0..2 {
        assert_eq!(raw.refused("{broken").await, (-32700, null.clone()));
        assert_eq!(raw.refused(b"\xff\xfe\x00").await, (-32700, null.clone()));
        assert_eq!(
            raw.refused("[".repeat(200_000)).await,
            (-32700, null.clone())
        );
        assert_eq!(
            raw.refused(vec![b'x'; 9 << 20]).await,
            (-32600, null.clone())
        );
        assert_eq!(
            raw.refused(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#)
                .await,
            (-32600, null.clone())
        );
        assert_eq!(
            raw.refused(r#"{"id":7,"method":"ping"}"#).await,
            (-32600, json!(7))
        );
        assert_eq!(
            raw.refused(r#"{"jsonrpc":"2.0","id":"a","method":"no/such"}"#)
                .await,
            (-32601, json!("a"))
        );
        assert_eq!(
            raw.refused(r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":5}}"#)
                .await,
            (-32602, json!(8))
        );
        let wrong = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"ask","arguments":"text"}}"#;
        assert_eq!(raw.refused(wrong).await, (-32602, json!(9)));
        for unanswered in [
            "",
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/unknown","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":55,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}"#,
        ] {
            raw.write(unanswered).await;
        }
        if turn == 0 {
            let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
            let greeted = raw.ask(1, "initialize", hello).await;
            assert_eq!(
                greeted["result"]["protocolVersion"], "2025-06-18",
                "{greeted}"
            );
            assert_eq!(greeted["result"]["serverInfo"]["name"], "deerflow");
            raw.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
                .await;
        }
    }
    let answer = raw
        .ask(
            2,
            "tools/call",
            json!({"name": "ask", "arguments": {"message": "then say fine"}}),
        )
        .await;
    assert_eq!(
        answer["result"]["structuredContent"]["text"], "fine",
        "{answer}"
    );
    // An unfinished line is not a message.
    raw.input
        .write_all(br#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#)
        .await
        .expect("written");
    drop(raw.input);
    assert_eq!(
        timeout(TIMEOUT, raw.lines.next_line())
            .await
            .expect("in time")
            .expect("read"),
        None
    );
    assert!(server.ended().await.success());
}

#[tokio::test]
async fn failed_start_prints_nothing_on_standard_output() {
    let home = tempfile::tempdir().expect("a home");
    std::fs::write(home.path().join("config.yaml"), "models: 5\n").expect("written");
    let mut child = run(&home);
    let mut printed = String::new();
    timeout(
        TIMEOUT,
        child
            .stdout
            .take()
            .expect("output")
            .read_to_string(&mut printed),
    )
    .await
    .expect("in time")
    .expect("read");
    let status = timeout(TIMEOUT, child.wait())
        .await
        .expect("in time")
        .expect("a status");
    assert_eq!((printed.as_str(), status.success()), ("", false));
}

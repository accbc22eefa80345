//! Tests of eviction and of shared opening attempts.

use super::super::http::client;
use super::super::session::{SessionContext, ToolListChange};
use super::super::spec::ServerSpec;
use super::super::test_kit::ScriptedServer;
use super::*;

fn key(thread: &str) -> SessionKey {
    SessionKey {
        server: 1,
        user: "ann".to_owned(),
        thread: thread.to_owned(),
    }
}

fn opening() -> BoxFuture<'static, Result<Session, McpError>> {
    async {
        let spec = ServerSpec::read("s", &ScriptedServer::default().entry())
            .unwrap()
            .unwrap();
        let variables = [("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())];
        let (client, working_dir) = (client().unwrap(), Default::default());
        Session::open(
            &spec,
            SessionContext {
                client: &client,
                variables: &variables,
                working_dir,
                token: None,
                tool_list_change: ToolListChange::default(),
            },
        )
        .await
    }
    .boxed()
}

#[tokio::test]
async fn only_idle_sessions_are_evicted() {
    let pool = Pool::with_capacity(2);
    let first = pool.get(&key("a"), opening).await.unwrap();
    drop(pool.get(&key("b"), opening).await.unwrap());
    let third = pool.get(&key("c"), opening).await.unwrap();
    assert!(pool.slots.lock().contains_key(&key("a")), "it is in use");
    assert_eq!(
        pool.get(&key("d"), opening).await.unwrap_err(),
        McpError::Full(2)
    );
    assert!(Arc::ptr_eq(
        &third,
        &pool.get(&key("c"), opening).await.unwrap()
    ));
    drop(first);
    pool.get(&key("d"), opening).await.unwrap();
    assert_eq!(
        pool.slots
            .lock()
            .keys()
            .map(|key| key.thread.as_str())
            .collect::<Vec<_>>(),
        ["c", "d"]
    );
}

#[tokio::test]
async fn abandoned_opening_is_retried() {
    let pool = Pool::with_capacity(1);
    let stuck = || std::future::pending().boxed();
    let waits = key("a");
    tokio::select! {
        biased;
        _never = pool.get(&waits, stuck) => panic!("the session opened"),
        () = std::future::ready(()) => {}
    }
    pool.get(&key("a"), opening).await.unwrap();
    assert_eq!(
        pool.get(&key("b"), || async { Err(McpError::Ended) }.boxed())
            .await
            .unwrap_err(),
        McpError::Ended
    );
    assert!(pool.slots.lock().is_empty(), "a failure is not cached");
}

//! Contract of requests with long texts and with many messages.

use serde_json::json;

use super::{RunStores, admit, claim, end, get, queued, run};
use crate::definition::{RequestEcho, RunInput};
use crate::runs::store::{Claimed, NewRun, RunListQuery};
use crate::runs::{RunRecord, RunStatus};
use crate::testkit::{at, message, new_run, node, with_request};
use deerflow_core::actor_context::Owner;

/// Adds a message of 200 KB and many short ones to the request of a run.
fn large(new: NewRun) -> NewRun {
    with_request(new, |request| {
        let long = "a \"long\" text \u{e9}\n".repeat(10_000);
        let texts = std::iter::once(long).chain((0..2_000).map(|number| format!("text {number}")));
        let texts: Vec<_> = texts.collect();
        let echoed = texts
            .iter()
            .map(|text| json!({"role": "user", "content": text}));
        let echo = json!({"input": {"messages": echoed.collect::<Vec<_>>()}});
        request.presentation.request_echo = echo.into();
        let messages = texts.iter().enumerate();
        let messages = messages.map(|(number, text)| message(&format!("m{number}"), text));
        if let RunInput::Update(update) = &mut request.input {
            update.messages = messages.collect();
        }
    })
}

fn echo(new: &NewRun) -> &RequestEcho {
    &new.request().presentation.request_echo
}

fn assert_whole(claimed: Option<Claimed>, new: &NewRun) {
    let claimed = claimed.expect("claimed");
    assert_eq!(claimed.run.run_id, new.run_id);
    assert!(claimed.run.kwargs == *echo(new), "the echo differs");
    let request = claimed.recipe.expect("a stored request");
    assert!(
        request.spec.input == new.request().input,
        "the input differs"
    );
}

/// A large request is returned by every read, and its echo after the end of the run too.
pub async fn large_request_is_returned_whole(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let (first, second) = (large(new_run("r1", "t1")), large(queued("r2", "t1", 0)));
    for new in [&first, &second] {
        admit(&stores, new.clone()).await;
        let record = get(&stores, new.run_id.as_str()).await;
        assert!(record.kwargs == *echo(new), "the echo differs");
    }
    let has_echo = |record: &RunRecord| record.kwargs == *echo(&first);
    let active = stores.query.active(&first.thread_id).await;
    assert!(active.expect("read").as_ref().is_some_and(has_echo));
    let query = RunListQuery {
        limit: 9,
        ..RunListQuery::default()
    };
    let listed = stores.query.list(&first.thread_id, &query, &Owner::None);
    let listed = listed.await.expect("listed");
    assert!(listed.len() == 2 && listed.iter().all(has_echo));
    let stored = stores.query.stored_request(&first.run_id).await;
    let stored = stored.expect("read").expect("an unfinished run");
    assert!(
        stored.spec.input == first.request().input,
        "the input differs"
    );

    let taken_over = stores.create.take_over(&node("n2"), at(1)).await;
    assert_whole(taken_over.expect("read"), &first);
    end(&stores, "r1", RunStatus::Error).await;
    assert_whole(claim(&stores, 2).await, &second);
    end(&stores, "r2", RunStatus::Error).await;
    for id in ["r1", "r2"] {
        assert!(has_echo(&get(&stores, id).await));
        let stored = stores.query.stored_request(&run(id)).await;
        assert!(stored.expect("read").is_none());
    }
}

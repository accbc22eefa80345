//! Runs whose streams go through Redis.

use deerflow_tests::sse::SseFrame;

use crate::rig::{Rig, body, text};

fn through_redis() -> String {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests have no configuration object"
    )]
    let url = std::env::var("DEERFLOW_TEST_REDIS_URL");
    let url = url.expect("set DEERFLOW_TEST_REDIS_URL to a scratch server such as redis://127.0.0.1:6379; the tests create keys in it");
    format!("stream_bridge: {{type: redis, redis_url: '{url}'}}\n")
}

/// Returns the numbers of the frames that have an id.
fn numbers(frames: &[SseFrame]) -> Vec<u64> {
    let ids = frames.iter().filter_map(|frame| frame.id.as_deref());
    ids.map(|id| {
        id.split_once('-')
            .expect("digits-digits")
            .0
            .parse()
            .expect("a number")
    })
    .collect()
}

#[tokio::test]
#[ignore = "needs DEERFLOW_TEST_REDIS_URL; make test-external runs it"]
async fn stream_through_redis_is_equal_live_and_replayed() {
    let rig = Rig::with(&through_redis()).await;
    let run = rig.run_prompt("[[slow 50x2ms]] then say x").await;
    let replayed = rig
        .join(&run.thread, &run.run, Some("-1"))
        .await
        .collect()
        .await
        .expect("an answer that ends");
    let seen = |frames: &[SseFrame]| -> Vec<_> {
        frames
            .iter()
            .filter(|frame| !frame.is_comment())
            .map(|frame| {
                (
                    frame.id.clone(),
                    frame.name().to_owned(),
                    frame.data.clone(),
                )
            })
            .collect()
    };
    assert_eq!(seen(&replayed), seen(&run.frames));
    assert_eq!(
        numbers(&replayed),
        (1..=numbers(&replayed).len() as u64).collect::<Vec<_>>()
    );
}

#[tokio::test]
#[ignore = "needs DEERFLOW_TEST_REDIS_URL; make test-external runs it"]
async fn events_missed_during_gateway_kill_remain_in_redis() {
    let mut rig = Rig::with(&through_redis()).await;
    let thread = rig.thread().await;
    let mut stream = rig
        .stream(&thread, &body("[[slow 200x10ms]] message"))
        .await;
    let first = stream.next_frame().await.expect("frame").expect("open");
    let run = text(&first.json().expect("json")["run_id"]).to_owned();
    let mut seen = vec![first];
    while seen.len() < 30 {
        seen.push(stream.next_frame().await.expect("frame").expect("open"));
    }
    rig.gateway.kill9().await.expect("killed");
    rig.gateway.restart().await.expect("healthy again");
    let cursor = seen[20].id.clone().expect("a numbered frame");
    let missed = rig
        .join(&thread, &run, Some(&cursor))
        .await
        .collect()
        .await
        .expect("an answer that ends");
    let expected = numbers(&seen[..=20]).last().expect("a number") + 1;
    let numbers = numbers(&missed);
    assert!(
        numbers.len() > 8
            && numbers
                .iter()
                .copied()
                .eq(expected..expected + numbers.len() as u64),
        "{numbers:?}"
    );
    let names: Vec<_> = missed
        .iter()
        .filter(|frame| !frame.is_comment())
        .map(SseFrame::name)
        .collect();
    assert!(
        names.last() == Some(&"end") && !names.contains(&"error"),
        "the run continues: {names:?}"
    );
}

//! Answers under random faults and deaths: the final text is shown exactly once.

use std::collections::HashMap;

use chrono::TimeDelta;
use deerflow_chat_platforms::common::Fault;
use deerflow_chat_platforms::feishu::FeishuOptions;
use proptest::prelude::*;
use serde_json::json;

use super::setup::{Setup, delivery, live_reply, text_message};
use crate::platform::OutgoingMessage;

/// Attempts after which a delivery must have succeeded.
const MAX_ATTEMPTS: u32 = 40;

/// Event of a scripted answer.
#[derive(Debug, Clone)]
enum Step {
    /// A live update.
    Update,
    /// Fault of the next call.
    Fault(Fault),
    /// Death of the process before it stored the state of its last update.
    Death,
    /// End of streaming mode.
    EndStreaming,
    /// Time passes, in seconds.
    Pause(i64),
}

fn fault() -> impl Strategy<Value = Fault> {
    let answer = |status, code: i64| Fault::Answer {
        status,
        body: json!({"code": code, "msg": "scripted"}),
        headers: HashMap::new(),
    };
    prop_oneof![
        Just(Fault::LoseReply),
        Just(Fault::LoseReply),
        Just(Fault::Drop),
        Just(Fault::RateLimited {
            retry_after: 1.0,
            silent: false
        }),
        Just(answer(502, 1)),
        Just(answer(400, 99_991_663)),
        Just(answer(400, 230_020)),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Update),
        3 => fault().prop_map(Step::Fault),
        1 => Just(Step::Death),
        1 => Just(Step::EndStreaming),
        1 => (1_i64..700).prop_map(Step::Pause),
    ]
}

async fn answer(steps: Vec<Step>, has_cardkit: bool) {
    let setup = Setup::with(FeishuOptions {
        rate_limits: false,
        ..FeishuOptions::default()
    })
    .await;
    if !has_cardkit {
        setup.fake.remove_scope("cardkit:card:write");
    }
    let target = setup.target();
    let mut platform = setup.again();
    let mut reply = live_reply(&target);
    let mut stored = reply.clone();
    let mut faults = Vec::new();
    for (number, step) in steps.into_iter().enumerate() {
        match step {
            Step::Update => {
                setup.fake.faults().script("*", faults.drain(..));
                stored = reply.clone();
                let text = format!("Hello {number}");
                // Live updates are not repeated; the next one goes on.
                drop(platform.update_live(&mut reply, &text).await);
                setup.fake.faults().clear();
            }
            Step::Fault(fault) => faults.push(fault),
            Step::Death => {
                platform = setup.again();
                reply = stored.clone();
            }
            Step::EndStreaming => setup.fake.end_streaming(),
            Step::Pause(seconds) => setup.clock.advance(TimeDelta::seconds(seconds)),
        }
    }
    let message = OutgoingMessage {
        live: reply.state.clone(),
        ..text_message(&target, "the final text")
    };
    setup.fake.faults().script("*", faults);
    let mut delivery = delivery(1);
    let sent = loop {
        match platform.send(&message, None, &mut delivery).await {
            Ok(sent) => break sent,
            Err(error) => assert!(delivery.attempt < MAX_ATTEMPTS, "{error}"),
        }
        delivery.attempt += 1;
    };
    let shown: Vec<String> = setup
        .fake
        .sent()
        .into_iter()
        .map(|message| message.message_id)
        .filter(|id| setup.fake.visible(id) == "the final text")
        .collect();
    assert_eq!(shown, sent.ids);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn final_text_is_shown_once_under_faults(
        steps in proptest::collection::vec(step(), 0..14),
        has_cardkit in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(answer(steps, has_cardkit));
    }
}

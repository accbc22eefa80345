//! Tests of live messages against the fake.

use deerflow_chat_platforms::common::Fault;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::platform::{Content, EventBody, OutgoingMessage, PlatformError};

use crate::testkit::RecordingSink;

use super::test_bench::{delivery, fake, fake_with, live, outgoing, part, platform, soon, target};

fn completing(chat: i64, state: &Value) -> OutgoingMessage {
    let content = Content::Text(part("<b>done</b>", "done"));
    OutgoingMessage {
        live: state.clone(),
        ..outgoing(target(chat), content)
    }
}

#[tokio::test]
async fn private_chat_shows_drafts_then_the_message() {
    let fake = fake().await;
    fake.say(42, 42, "hi");
    let platform = platform(&fake);
    let mut reply = live(target(42));
    platform.update_live(&mut reply, "Hel").await.unwrap();
    let state = reply.state.clone();
    platform.update_live(&mut reply, "Hello").await.unwrap();
    // The same text is sent again, which prolongs the preview.
    platform.update_live(&mut reply, "Hello").await.unwrap();
    assert_eq!(reply.state, state);
    let draft = fake.draft(42).unwrap();
    assert_eq!(
        (draft.id, draft.text.as_str(), draft.can_stop),
        (77, "Hello", true)
    );
    assert_eq!(fake.calls().of("sendMessageDraft").len(), 3);
    platform
        .send(&completing(42, &state), None, &mut delivery())
        .await
        .unwrap();
    assert!(fake.draft(42).is_none());
    assert_eq!(fake.answers(42).len(), 1);
    assert_eq!(fake.answers(42)[0].text, "done");
}

#[tokio::test]
async fn stop_of_a_draft_is_an_event() {
    let fake = fake().await;
    let platform = platform(&fake);
    let sink = RecordingSink::default();
    fake.say(42, 42, "hi");
    let acting = async {
        sink.wait_until(|sink| sink.events().len() == 1).await;
        platform
            .update_live(&mut live(target(42)), "Hel")
            .await
            .unwrap();
        assert!(fake.stop_draft(42));
        sink.wait_until(|sink| sink.events().len() == 2).await;
    };
    soon(async {
        tokio::select! {
            result = platform.listen(&sink, None, CancellationToken::new()) => panic!("{result:?}"),
            () = acting => {}
        }
    })
    .await;
    let event = sink.events().remove(1);
    assert_eq!(event.body, EventBody::Stop { topic: None });
    assert_eq!(event.chat.id, "42");
}

#[tokio::test]
async fn server_without_drafts_gets_edits_for_good() {
    let fake = fake_with(|options| options.drafts = false).await;
    fake.say(42, 42, "hi");
    let platform = platform(&fake);
    for _ in 0..2 {
        let mut reply = live(target(42));
        platform.update_live(&mut reply, "Hel").await.unwrap();
        platform.update_live(&mut reply, "Hello").await.unwrap();
        assert_eq!(reply.state["mode"], "edit");
    }
    assert_eq!(fake.calls().of("sendMessageDraft").len(), 1);
    let answers = fake.answers(42);
    assert_eq!(answers.len(), 2);
    assert!(
        answers
            .iter()
            .all(|answer| answer.text == "Hello" && answer.edits == 1)
    );
}

#[tokio::test]
async fn drafts_that_vanish_in_mid_answer_become_edits() {
    let fake = fake().await;
    fake.say(42, 42, "hi");
    let platform = platform(&fake);
    let mut reply = live(target(42));
    platform.update_live(&mut reply, "Hel").await.unwrap();
    let missing = Fault::Answer {
        status: 404,
        body: json!({"ok": false, "error_code": 404, "description": "Not Found"}),
        headers: std::collections::HashMap::new(),
    };
    fake.faults().script("sendMessageDraft", [missing]);
    platform.update_live(&mut reply, "Hello").await.unwrap();
    assert_eq!(reply.state["mode"], "edit");
    assert_eq!(fake.answers(42)[0].text, "Hello");
}

#[tokio::test]
async fn group_edits_one_message_and_completes_it() {
    let fake = fake().await;
    let asked = fake.say(-1001, 42, "@deer_bot hi");
    let platform = platform(&fake);
    let mut reply = live(target(-1001));
    reply.target.reply_to = Some(asked.to_string());
    platform.update_live(&mut reply, "Hel").await.unwrap();
    platform.update_live(&mut reply, "Hello").await.unwrap();
    platform.update_live(&mut reply, "Hello").await.unwrap();
    assert_eq!(fake.calls().of("editMessageText").len(), 1);
    let shown = fake.answers(-1001);
    assert_eq!(
        shown[0].keyboard["inline_keyboard"][0][0]["callback_data"],
        "stop:77"
    );
    let sent = platform
        .send(&completing(-1001, &reply.state), None, &mut delivery())
        .await
        .unwrap();
    let answers = fake.answers(-1001);
    assert_eq!(answers.len(), 1);
    assert_eq!(sent.ids, [answers[0].id.to_string()]);
    assert_eq!(
        (answers[0].text.as_str(), &answers[0].keyboard),
        ("done", &Value::Null)
    );
    // A second attempt finds the message as it is wanted.
    platform
        .send(&completing(-1001, &reply.state), None, &mut delivery())
        .await
        .unwrap();
    assert_eq!(fake.answers(-1001).len(), 1);
}

#[tokio::test]
async fn deleted_live_message_is_replaced() {
    let fake = fake().await;
    fake.say(-1001, 42, "@deer_bot hi");
    let platform = platform(&fake);
    let mut reply = live(target(-1001));
    platform.update_live(&mut reply, "Hel").await.unwrap();
    let first = fake.answers(-1001)[0].id;
    fake.delete(-1001, first);
    platform.update_live(&mut reply, "Hello").await.unwrap();
    let second = fake.answers(-1001)[0].id;
    fake.delete(-1001, second);
    platform
        .send(&completing(-1001, &reply.state), None, &mut delivery())
        .await
        .unwrap();
    let answers = fake.answers(-1001);
    assert_eq!((answers.len(), answers[0].text.as_str()), (1, "done"));
}

#[tokio::test]
async fn live_text_is_rendered_with_its_open_code_block_closed() {
    let fake = fake().await;
    fake.say(42, 42, "hi");
    fake.say(-1001, 42, "@deer_bot hi");
    let platform = platform(&fake);
    let markdown = "**Yes**\n\n```rust\nlet a = 1 <";
    for chat in [42, -1001] {
        let mut reply = live(target(chat));
        platform.update_live(&mut reply, "**Y").await.unwrap();
        platform.update_live(&mut reply, markdown).await.unwrap();
    }
    assert_eq!(fake.draft(42).unwrap().text, "Yes\n\nlet a = 1 <");
    let shown = fake.answers(-1001).remove(0);
    assert_eq!(shown.text, "Yes\n\nlet a = 1 <");
    let kinds: Vec<&str> = shown
        .entities
        .iter()
        .filter_map(|one| one["type"].as_str())
        .collect();
    assert_eq!(kinds, ["bold", "code", "pre"]);
    let calls = fake.calls();
    assert_eq!(calls.of("editMessageText").len(), 1);
    assert_eq!(calls.of("sendMessageDraft")[1].body["parse_mode"], "HTML");
}

#[tokio::test]
async fn refused_markup_of_a_live_text_is_sent_as_plain_text() {
    let fake = fake().await;
    fake.say(42, 42, "hi");
    fake.say(-1001, 42, "@deer_bot hi");
    let platform = platform(&fake);
    let refused = || Fault::Answer {
        status: 400,
        body: json!({"ok": false, "error_code": 400, "description": "Bad Request: can't parse entities"}),
        headers: std::collections::HashMap::new(),
    };
    fake.faults().script("sendMessageDraft", [refused()]);
    let mut reply = live(target(42));
    platform.update_live(&mut reply, "**Yes**").await.unwrap();
    assert_eq!(fake.draft(42).unwrap().text, "Yes");
    let mut reply = live(target(-1001));
    platform.update_live(&mut reply, "Hel").await.unwrap();
    fake.faults().script("editMessageText", [refused()]);
    platform.update_live(&mut reply, "**Yes**").await.unwrap();
    assert_eq!(fake.answers(-1001)[0].text, "Yes");
}

#[tokio::test]
async fn long_live_text_stays_within_the_limit() {
    let fake = fake().await;
    fake.say(42, 42, "hi");
    let mut reply = live(target(42));
    platform(&fake)
        .update_live(&mut reply, &"😀".repeat(5000))
        .await
        .unwrap();
    assert!(fake.draft(42).unwrap().text.starts_with('…'));
}

#[tokio::test]
async fn rate_limit_of_a_live_message_is_returned() {
    let fake = fake_with(|options| options.rate_limits = true).await;
    fake.say(-1001, 42, "@deer_bot hi");
    let platform = platform(&fake);
    let mut reply = live(target(-1001));
    let mut refused = None;
    for index in 0..5 {
        if let Err(error) = platform
            .update_live(&mut reply, &format!("text {index}"))
            .await
        {
            refused = Some((index, error));
            break;
        }
    }
    let (index, error) = refused.unwrap();
    assert_eq!(index, 3);
    assert!(
        matches!(error, PlatformError::RateLimited { .. }),
        "{error:?}"
    );
}

//! Tests of live messages against the fake.

use std::collections::HashMap;
use std::time::Duration;

use deerflow_chat_platforms::common::Fault;
use deerflow_chat_platforms::slack::{SlackFake, SlackMessage};
use serde_json::{Value, json};
use uuid::Uuid;

use super::super::adapter::SlackPlatform;
use super::super::fixtures::{adapter, delivery, fake, message, part, reply, target};
use crate::markup::Part;
use crate::platform::{Button, Content, LiveReply, Platform, PlatformError};

async fn finish(platform: &SlackPlatform, reply: &LiveReply, part: Part) -> Vec<String> {
    let content = Content::Text(part);
    let message = message(reply.target.clone(), content, reply.state.clone());
    platform
        .send(&message, None, &mut delivery(1, 1))
        .await
        .unwrap()
        .ids
}

fn only_answer(fake: &SlackFake, channel: &str) -> SlackMessage {
    let mut answers = fake.answers(channel);
    assert_eq!(answers.len(), 1, "{answers:?}");
    answers.remove(0)
}

fn start(fake: &SlackFake) -> LiveReply {
    let ts = fake.mention("C1", "U1", "hello");
    reply(target("C1", &ts))
}

#[tokio::test]
async fn stream_appends_only_the_new_suffix() {
    let fake = fake(|_| {}).await;
    let platform = adapter(&fake);
    let mut reply = start(&fake);
    for text in ["", "Hel", "Hello", "Hello", "Hello wor"] {
        platform.update_live(&mut reply, text).await.unwrap();
    }
    let started = only_answer(&fake, "C1");
    assert!(started.streaming());
    assert_eq!(started.text, "Hello wor");
    let appended: Vec<Value> = fake
        .calls()
        .of("chat.appendStream")
        .into_iter()
        .map(|call| call.body["markdown_text"].clone())
        .collect();
    assert_eq!(appended, ["lo", " wor"]);
    let body = &fake.calls().of("chat.startStream")[0].body;
    assert_eq!(
        (&body["recipient_team_id"], &body["recipient_user_id"]),
        (&json!("T1"), &json!("U1"))
    );
    let ids = finish(&platform, &reply, part("Hello world", "Hello world")).await;
    let done = only_answer(&fake, "C1");
    assert_eq!(ids, std::slice::from_ref(&done.ts));
    assert_eq!(
        (done.text.as_str(), done.streaming(), done.edits),
        ("Hello world", false, 0)
    );
}

#[tokio::test]
async fn final_text_with_markup_replaces_the_stream() {
    let fake = fake(|_| {}).await;
    let platform = adapter(&fake);
    let mut reply = start(&fake);
    platform
        .update_live(&mut reply, "**Hello** <!channel> <")
        .await
        .unwrap();
    assert_eq!(only_answer(&fake, "C1").text, "**Hello** &lt;!channel> ");
    let markup = "*Hello* &lt;!channel&gt; &lt;b&gt;";
    finish(&platform, &reply, part(markup, "Hello <!channel> <b>")).await;
    let done = only_answer(&fake, "C1");
    assert_eq!((done.text.as_str(), done.streaming()), (markup, false));
    // A repetition after a lost result changes nothing.
    finish(&platform, &reply, part(markup, "Hello <!channel> <b>")).await;
    assert_eq!(only_answer(&fake, "C1").text, markup);
}

#[tokio::test]
async fn stream_that_shows_the_whole_text_is_only_stopped() {
    let fake = fake(|_| {}).await;
    let platform = adapter(&fake);
    let mut reply = start(&fake);
    platform.update_live(&mut reply, "a & b").await.unwrap();
    finish(&platform, &reply, part("a &amp; b", "a & b")).await;
    let done = only_answer(&fake, "C1");
    assert_eq!(
        (done.text.as_str(), done.streaming(), done.edits),
        ("a & b", false, 0)
    );
}

#[tokio::test]
async fn direct_chat_streams_too() {
    let fake = fake(|_| {}).await;
    let platform = adapter(&fake);
    let ts = fake.say_dm("U1", "hello");
    let mut reply = reply(target("DU1", &ts));
    platform.update_live(&mut reply, "Hel").await.unwrap();
    finish(&platform, &reply, part("Hello", "Hello")).await;
    let done = only_answer(&fake, "DU1");
    assert_eq!((done.text.as_str(), done.edits), ("Hello", 0));
}

#[tokio::test]
async fn expired_stream_continues_by_editing() {
    let fake = fake(|_| {}).await;
    let platform = adapter(&fake);
    let mut reply = start(&fake);
    platform.update_live(&mut reply, "one").await.unwrap();
    fake.expire_streams(Duration::ZERO);
    platform.update_live(&mut reply, "one two").await.unwrap();
    assert_eq!(only_answer(&fake, "C1").text, "one two");
    platform
        .update_live(&mut reply, "one two three")
        .await
        .unwrap();
    assert_eq!(only_answer(&fake, "C1").text, "one two three");
    finish(&platform, &reply, part("*one*", "one")).await;
    assert_eq!(only_answer(&fake, "C1").text, "*one*");
}

#[tokio::test]
async fn stream_that_expires_before_the_end_is_completed() {
    let fake = fake(|_| {}).await;
    let platform = adapter(&fake);
    let mut reply = start(&fake);
    platform.update_live(&mut reply, "one").await.unwrap();
    fake.expire_streams(Duration::ZERO);
    finish(&platform, &reply, part("one two", "one two")).await;
    assert_eq!(only_answer(&fake, "C1").text, "one two");
}

#[tokio::test]
async fn changed_text_continues_by_editing() {
    let fake = fake(|_| {}).await;
    let platform = adapter(&fake);
    let mut reply = start(&fake);
    platform.update_live(&mut reply, "one").await.unwrap();
    platform.update_live(&mut reply, "other").await.unwrap();
    let edited = only_answer(&fake, "C1");
    assert_eq!(
        (edited.text.as_str(), edited.streaming(), edited.edits),
        ("other", false, 1)
    );
}

#[tokio::test]
async fn missing_streams_are_remembered() {
    let fake = fake(|options| options.unknown_methods = vec!["chat.startStream".to_owned()]).await;
    let platform = adapter(&fake);
    for key in [1, 2] {
        let mut reply = start(&fake);
        reply.key = Uuid::from_u128(key << 64);
        for text in ["one", "one two"] {
            platform.update_live(&mut reply, text).await.unwrap();
        }
        finish(&platform, &reply, part("*one*", "one")).await;
    }
    let texts: Vec<(String, usize)> = fake
        .answers("C1")
        .into_iter()
        .map(|message| (message.text, message.edits))
        .collect();
    assert_eq!(texts, [("*one*".to_owned(), 2), ("*one*".to_owned(), 2)]);
    assert_eq!(fake.calls().of("chat.startStream").len(), 1);
}

#[tokio::test]
async fn missing_recipients_are_edited() {
    let fake = fake(|_| {}).await;
    let platform = adapter(&fake);
    let mut reply = start(&fake);
    reply.target.person = String::new();
    platform.update_live(&mut reply, "one").await.unwrap();
    assert!(fake.calls().of("chat.startStream").is_empty());
    assert_eq!(only_answer(&fake, "C1").text, "one");
}

#[tokio::test]
async fn stop_button_goes_with_the_final_text() {
    let fake = fake(|options| options.unknown_methods = vec!["chat.startStream".to_owned()]).await;
    let platform = adapter(&fake);
    let mut reply = start(&fake);
    reply.stop = Some(Button {
        label: "Stop".to_owned(),
        data: "stop:1".to_owned(),
    });
    platform.update_live(&mut reply, "one").await.unwrap();
    assert_eq!(
        only_answer(&fake, "C1").blocks[1]["elements"][0]["value"],
        "stop:1"
    );
    finish(&platform, &reply, part("one", "one")).await;
    assert!(only_answer(&fake, "C1").blocks.is_empty());
}

#[tokio::test]
async fn lost_replies_show_no_text_twice() {
    let fake = fake(|_| {}).await;
    let platform = adapter(&fake);
    let mut reply = start(&fake);
    platform.update_live(&mut reply, "one").await.unwrap();
    fake.faults()
        .script("chat.appendStream", [Fault::LoseReply]);
    let error = platform
        .update_live(&mut reply, "one two")
        .await
        .unwrap_err();
    assert!(matches!(error, PlatformError::Unavailable(_)));
    platform
        .update_live(&mut reply, "one two three")
        .await
        .unwrap();
    assert_eq!(only_answer(&fake, "C1").text, "one two three");
}

#[tokio::test]
async fn lost_post_of_a_live_message_is_found_again() {
    let fake = fake(|options| options.unknown_methods = vec!["chat.startStream".to_owned()]).await;
    let platform = adapter(&fake);
    let mut reply = start(&fake);
    fake.faults().script("chat.postMessage", [Fault::LoseReply]);
    platform.update_live(&mut reply, "one").await.unwrap_err();
    finish(&platform, &reply, part("one two", "one two")).await;
    assert_eq!(only_answer(&fake, "C1").text, "one two");
}

#[tokio::test]
async fn stream_whose_start_was_not_recorded_is_found_again() {
    let fake = fake(|_| {}).await;
    let mut reply = start(&fake);
    let earlier = adapter(&fake);
    earlier
        .update_live(&mut reply.clone(), "**One** two & ")
        .await
        .unwrap();
    // The process ends here, before the state is stored.
    let platform = adapter(&fake);
    reply.may_exist = true;
    let text = "**One** two & three";
    platform.update_live(&mut reply, text).await.unwrap();
    finish(
        &platform,
        &reply,
        part("*One* two &amp; three", "One two & three"),
    )
    .await;
    let done = only_answer(&fake, "C1");
    assert_eq!(
        (done.text.as_str(), done.streaming()),
        ("*One* two &amp; three", false)
    );
    assert_eq!(fake.calls().of("chat.startStream").len(), 1);
}

#[tokio::test]
async fn stream_whose_start_has_a_lost_result_is_found_again() {
    let fake = fake(|_| {}).await;
    let platform = adapter(&fake);
    let mut reply = start(&fake);
    fake.faults().script("chat.startStream", [Fault::LoseReply]);
    platform.update_live(&mut reply, "one").await.unwrap_err();
    reply.may_exist = true;
    platform.update_live(&mut reply, "one two").await.unwrap();
    assert_eq!(only_answer(&fake, "C1").text, "one two");
}

#[tokio::test]
async fn completed_answer_with_the_same_text_is_no_lost_stream() {
    let fake = fake(|_| {}).await;
    let platform = adapter(&fake);
    let mut first = start(&fake);
    // Both questions are in one thread; the answer to the first follows the second question.
    let thread = first.target.context["thread"].as_str().unwrap().to_owned();
    let asked = fake.say_in_thread("C1", "U1", &thread, "and again?");
    let mut second = reply(target("C1", &thread));
    second.target.reply_to = Some(asked);
    second.key = Uuid::from_u128(0x20);
    second.may_exist = true;
    platform.update_live(&mut first, "same").await.unwrap();
    finish(&platform, &first, part("same", "same")).await;
    // A process that ends before it stores the state repeats the search.
    platform
        .update_live(&mut second.clone(), "same")
        .await
        .unwrap();
    platform.update_live(&mut second, "same").await.unwrap();
    assert_eq!(fake.answers("C1").len(), 2);
}

#[tokio::test]
async fn deleted_live_message_is_answered_anew() {
    let fake = fake(|_| {}).await;
    let platform = adapter(&fake);
    let mut reply = start(&fake);
    platform.update_live(&mut reply, "one").await.unwrap();
    let deleted = only_answer(&fake, "C1").ts;
    fake.delete("C1", &deleted);
    finish(&platform, &reply, part("one two", "one two")).await;
    let done = only_answer(&fake, "C1");
    assert_eq!(done.text, "one two");
    assert_ne!(done.ts, deleted);
}

#[tokio::test]
async fn rate_limit_of_a_method_stops_its_calls_everywhere() {
    let fake = fake(|_| {}).await;
    let platform = adapter(&fake);
    let mut first = start(&fake);
    let mut second = start(&fake);
    second.key = Uuid::from_u128(2);
    platform.update_live(&mut first, "one").await.unwrap();
    platform.update_live(&mut second, "one").await.unwrap();
    let limited = Fault::RateLimited {
        retry_after: 33.0,
        silent: false,
    };
    fake.faults().script("chat.appendStream", [limited]);
    let error = platform
        .update_live(&mut first, "one two")
        .await
        .unwrap_err();
    let retry_after = Duration::from_secs(33);
    assert_eq!(
        error,
        PlatformError::RateLimited {
            retry_after,
            account: false
        }
    );
    platform.update_live(&mut second, "one two").await.unwrap();
    assert_eq!(fake.calls().of("chat.appendStream").len(), 1);
    finish(&platform, &first, part("one two", "one two")).await;
    assert_eq!(fake.answers("C1")[0].text, "one two");
}

#[tokio::test]
async fn many_answers_stay_below_the_tiers() {
    let fake = fake(|options| options.rate_limits = true).await;
    let platform = adapter(&fake);
    let mut replies = Vec::new();
    for number in 0..50_u128 {
        let ts = fake.say_dm(&format!("U{number}"), "hello");
        let mut reply = reply(target(&format!("DU{number}"), &ts));
        reply.key = Uuid::from_u128(number << 64);
        replies.push(reply);
    }
    for text in ["one", "one two", "one two three"] {
        for reply in &mut replies {
            platform.update_live(reply, text).await.unwrap();
        }
    }
    let refused = fake
        .calls()
        .all()
        .into_iter()
        .filter(|call| call.error == 429)
        .count();
    assert_eq!(refused, 0);
}

#[tokio::test]
async fn refused_start_falls_to_a_post() {
    let fake = fake(|_| {}).await;
    let platform = adapter(&fake);
    let mut reply = start(&fake);
    let refusal = Fault::Answer {
        status: 200,
        body: json!({"ok": false, "error": "missing_recipient_team_id"}),
        headers: HashMap::new(),
    };
    fake.faults().script("chat.startStream", [refusal]);
    platform.update_live(&mut reply, "one").await.unwrap();
    assert_eq!(only_answer(&fake, "C1").text, "one");
    let mut next = start(&fake);
    next.key = Uuid::from_u128(3);
    platform.update_live(&mut next, "two").await.unwrap();
    assert_eq!(fake.calls().of("chat.startStream").len(), 2);
}

//! Tests of sending against the fake.

use bytes::Bytes;
use deerflow_chat_platforms::common::Fault;
use deerflow_chat_platforms::telegram::{Post, PostedFile};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::platform::{Button, CommandHelp, Content, EventBody, FileBody, PlatformError, Receipt};

use crate::testkit::RecordingSink;

use super::test_bench::{
    delivery, fake, fake_with, outgoing, part, platform, platform_with, send_text, soon, target,
};

#[tokio::test]
async fn text_is_sent_as_html_reply() {
    let fake = fake().await;
    let asked = fake.say(42, 42, "hi");
    let mut target = target(42);
    target.reply_to = Some(asked.to_string());
    let ids = send_text(&*platform(&fake), target, "<b>yes</b> &amp; no")
        .await
        .unwrap();
    let answers = fake.answers(42);
    assert_eq!(ids, [answers[0].id.to_string()]);
    assert_eq!(answers[0].text, "yes & no");
    assert_eq!(answers[0].reply_to, Some(asked));
}

#[tokio::test]
async fn invalid_markup_is_sent_as_plain_text_once() {
    let fake = fake().await;
    fake.say(42, 42, "hi");
    send_text(&*platform(&fake), target(42), "<h1>x")
        .await
        .unwrap();
    assert_eq!(fake.answers(42)[0].text, "plain");
    assert_eq!(fake.calls().of("sendMessage").len(), 2);
}

#[tokio::test]
async fn missing_reply_and_topic_are_omitted() {
    let fake = fake().await;
    fake.say(-1001, 42, "hi");
    let topic = fake.add_topic(-1001);
    fake.delete_topic(-1001, topic);
    let mut target = target(-1001);
    target.topic = Some(topic.to_string());
    target.reply_to = Some("999".to_owned());
    let refused = Fault::Answer {
        status: 400,
        body: json!({"ok": false, "error_code": 400,
            "description": "Bad Request: message to be replied not found"}),
        headers: std::collections::HashMap::new(),
    };
    fake.faults().script("sendMessage", [refused]);
    send_text(&*platform(&fake), target, "x").await.unwrap();
    let calls = fake.calls().of("sendMessage");
    assert_eq!(calls.len(), 3);
    assert_eq!(calls[2].body.get("reply_parameters"), None);
    assert_eq!(calls[2].body.get("message_thread_id"), None);
    assert_eq!(fake.answers(-1001).len(), 1);
}

#[tokio::test]
async fn migrated_group_gets_the_message_under_its_new_id() {
    let fake = fake().await;
    fake.say(-5, 42, "hi");
    fake.migrate(-5, -1005);
    send_text(&*platform(&fake), target(-5), "x").await.unwrap();
    assert_eq!(fake.answers(-1005)[0].text, "x");
}

#[tokio::test]
async fn blocked_bot_is_refused_for_good() {
    let fake = fake().await;
    fake.say(42, 42, "hi");
    let platform = platform(&fake);
    fake.set_blocked(43, true);
    let error = send_text(&*platform, target(43), "x").await.unwrap_err();
    assert!(matches!(error, PlatformError::Refused(_)), "{error:?}");
    assert!(!format!("{error:?}").contains(fake.token()));
}

#[tokio::test]
async fn buttons_are_pressed_and_confirmed_once() {
    let fake = fake().await;
    fake.say(42, 42, "hi");
    let platform = platform(&fake);
    let content = Content::Buttons {
        text: part("Which?", "Which?"),
        buttons: vec![Button {
            label: "Yes".to_owned(),
            data: "answer:1".to_owned(),
        }],
    };
    let sent = platform
        .send(&outgoing(target(42), content), None, &mut delivery())
        .await
        .unwrap();
    let message: i64 = sent.ids[0].parse().unwrap();
    assert_eq!(
        fake.answers(42)[0].keyboard,
        json!({"inline_keyboard": [[{"text": "Yes", "callback_data": "answer:1"}]]})
    );

    let press = fake.press_button(42, message, 42, "answer:1");
    let sink = RecordingSink::default();
    let stop = CancellationToken::new();
    let event = soon(async {
        tokio::select! {
            result = platform.listen(&sink, None, stop) => panic!("{result:?}"),
            () = sink.wait_until(|sink| sink.events().len() == 2) => sink.events().remove(1),
        }
    })
    .await;
    assert_eq!(event.id, format!("press:{press}"));
    match &event.body {
        EventBody::Press(body) => {
            assert_eq!(body.data, "answer:1");
            assert_eq!(body.message, Some(message.to_string()));
        }
        other => panic!("{other:?}"),
    }
    let mut target = target(42);
    target.context = event.context;
    platform.confirm_press(&target, "Thanks").await.unwrap();
    let answer = fake.press_answer(&press).unwrap();
    assert_eq!((answer.answered, answer.text.as_str()), (true, "Thanks"));
    assert!(platform.confirm_press(&target, "").await.is_err());
}

#[tokio::test]
async fn images_go_as_photos_and_other_files_as_documents() {
    let fake = fake().await;
    fake.say(42, 42, "hi");
    let platform = platform(&fake);
    let file = |name: &str, media_type: &str, bytes: &'static [u8]| FileBody {
        name: name.to_owned(),
        media_type: media_type.to_owned(),
        bytes: Bytes::from_static(bytes),
    };
    let content = Content::File {
        user_id: "u".to_owned(),
        thread_id: "t".to_owned(),
        path: "/mnt/user-data/outputs/x".to_owned(),
    };
    let message = outgoing(target(42), content);
    for body in [
        file("a.png", "image/png", b"\x89PNG\r\n\x1a\n0000"),
        file("broken.png", "image/png", b"no image"),
        file("b.pdf", "application/pdf", b"%PDF"),
        file("c.bin", "not a media type", b"123"),
    ] {
        platform
            .send(&message, Some(body), &mut delivery())
            .await
            .unwrap();
    }
    let files: Vec<_> = fake
        .answers(42)
        .into_iter()
        .filter_map(|answer| answer.file)
        .map(|file| (file.kind, file.name, file.bytes.len()))
        .collect();
    assert_eq!(
        files,
        [
            ("photo", "a.png".to_owned(), 12),
            ("document", "broken.png".to_owned(), 8),
            ("document", "b.pdf".to_owned(), 4),
            ("document", "c.bin".to_owned(), 3),
        ]
    );
    let empty = file("d.txt", "text/plain", b"");
    let error = platform
        .send(&message, Some(empty), &mut delivery())
        .await
        .unwrap_err();
    assert!(matches!(error, PlatformError::Refused(_)), "{error:?}");
}

#[tokio::test]
async fn long_text_is_sent_as_a_document() {
    let fake = fake().await;
    fake.say(42, 42, "hi");
    let content = Content::TextFile {
        name: "answer.md".to_owned(),
        text: "# Long".to_owned(),
    };
    let message = outgoing(target(42), content);
    platform(&fake)
        .send(&message, None, &mut delivery())
        .await
        .unwrap();
    let file = fake.answers(42)[0].file.clone().unwrap();
    assert_eq!(
        (file.name.as_str(), &file.bytes[..]),
        ("answer.md", &b"# Long"[..])
    );
}

#[tokio::test]
async fn received_files_are_downloaded_within_the_limit() {
    let fake = fake().await;
    let platform = platform(&fake);
    let file = PostedFile::document("a.txt", "text/plain", "content");
    let sizes = [None, Some(21 * 1024 * 1024)];
    for size in sizes {
        let file = match size {
            Some(size) => file.clone().with_size(size),
            None => file.clone(),
        };
        let post = Post {
            file: Some(file),
            ..Post::default()
        };
        fake.post(42, 42, post);
    }
    let sink = RecordingSink::default();
    soon(async {
        tokio::select! {
            result = platform.listen(&sink, None, CancellationToken::new()) => panic!("{result:?}"),
            () = sink.wait_until(|sink| sink.events().len() == 2) => {}
        }
    })
    .await;
    let files: Vec<_> = sink
        .events()
        .into_iter()
        .filter_map(|event| match event.body {
            EventBody::Message(mut message) => message.files.pop(),
            _ => None,
        })
        .collect();
    assert_eq!(platform.download(&files[0], 1024).await.unwrap(), "content");
    let mut unnamed_size = files[1].clone();
    unnamed_size.size = None;
    let mut unknown = files[0].clone();
    unknown.reference = json!({"file_id": "gone"});
    for (file, max) in [
        (&files[0], 3),
        (&files[1], u64::MAX),
        (&unnamed_size, u64::MAX),
        (&unknown, 9),
    ] {
        let error = platform.download(file, max).await.unwrap_err();
        assert!(matches!(error, PlatformError::Refused(_)), "{error:?}");
    }
}

#[tokio::test]
async fn identity_warns_about_privacy_mode() {
    let fake = fake().await;
    let identity = platform(&fake).identify().await.unwrap();
    assert_eq!(
        (identity.account.as_str(), identity.name.as_str()),
        ("123456", "@deer_bot")
    );
    assert_eq!(identity.warnings.len(), 1);
    let open = fake_with(|options| options.privacy_mode = false).await;
    assert!(
        platform(&open)
            .identify()
            .await
            .unwrap()
            .warnings
            .is_empty()
    );
}

#[tokio::test]
async fn commands_and_signs_are_shown() {
    let fake = fake().await;
    let asked = fake.say(42, 42, "hi");
    let platform = platform(&fake);
    let commands = [CommandHelp {
        name: "new",
        description: "Start a new conversation",
    }];
    platform.register_commands(&commands).await.unwrap();
    assert_eq!(fake.commands()[0]["command"], "new");
    let mut target = target(42);
    target.reply_to = Some(asked.to_string());
    for receipt in [
        Receipt::Received,
        Receipt::Working,
        Receipt::Done,
        Receipt::Failed,
    ] {
        platform.show(&target, receipt).await.unwrap();
    }
    assert_eq!(fake.messages(42)[0].reactions, ["👀"]);
    assert_eq!(fake.calls().of("sendChatAction").len(), 1);
}

#[tokio::test]
async fn rich_messages_fall_back_to_html() {
    for rich in [true, false] {
        let fake = fake_with(|options| options.rich_messages = rich).await;
        fake.say(42, 42, "hi");
        let platform = platform_with(&fake, json!({"rich_messages": true}));
        send_text(&*platform, target(42), "<b>x</b>").await.unwrap();
        let text = if rich { "<b>x</b>" } else { "x" };
        assert_eq!(fake.answers(42)[0].text, text);
    }
}

//! Tests of the fake over HTTP.

use std::time::Duration;

use reqwest::Client;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::common::Fault;

use super::{TelegramFake, TelegramOptions};

async fn fake() -> TelegramFake {
    let options = TelegramOptions {
        rate_limits: false,
        ..TelegramOptions::default()
    };
    TelegramFake::start(options).await.unwrap()
}

/// Calls a method; returns the answer with its status.
async fn call(fake: &TelegramFake, method: &str, body: Value) -> (u16, Value) {
    let address = format!("{}/bot{}/{method}", fake.base(), fake.token());
    let client = Client::builder().no_proxy().build().unwrap();
    let response = client.post(address).json(&body).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

/// Calls a method that is refused; returns the description.
async fn refused(fake: &TelegramFake, method: &str, body: Value) -> String {
    let (status, answer) = call(fake, method, body).await;
    assert_eq!(answer["ok"], false, "{answer}");
    assert_eq!(answer["error_code"], status);
    answer["description"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn calls_with_wrong_token_method_or_parameter_are_refused() {
    let fake = fake().await;
    let client = Client::builder().no_proxy().build().unwrap();
    for (token, status) in [("1:x", 401), ("x", 404)] {
        let address = format!("{}/bot{token}/getMe", fake.base());
        let response = client.get(address).send().await.unwrap();
        assert_eq!(response.status(), status);
    }
    let (status, _) = call(&fake, "sendNothing", json!({})).await;
    assert_eq!(status, 404);
    let description = refused(&fake, "getMe", json!({"chat": 1})).await;
    assert_eq!(description, "Bad Request: unknown parameter chat");
}

#[tokio::test]
async fn unconfirmed_updates_are_delivered_again() {
    let fake = fake().await;
    fake.say(42, 42, "one");
    fake.say(42, 42, "two");
    for _ in 0..2 {
        let (_, answer) = call(&fake, "getUpdates", json!({"limit": 1})).await;
        assert_eq!(answer["result"][0]["update_id"], 100);
    }
    let (_, answer) = call(&fake, "getUpdates", json!({"offset": 101})).await;
    assert_eq!(answer["result"][0]["update_id"], 101);
    assert_eq!(answer["result"].as_array().unwrap().len(), 1);
    assert_eq!(fake.unconfirmed(), 1);
}

#[tokio::test]
async fn older_poller_is_refused() {
    let fake = fake().await;
    let poll = json!({"timeout": 30});
    let older = call(&fake, "getUpdates", poll);
    let newer = async {
        while fake.shared().world().queue.poller == 0 {
            tokio::task::yield_now().await;
        }
        call(&fake, "getUpdates", json!({})).await
    };
    let both = timeout(Duration::from_secs(20), async {
        tokio::join!(older, newer)
    });
    let ((status, _), (newer, _)) = both.await.unwrap();
    assert_eq!((status, newer), (409, 200));
}

#[tokio::test]
async fn long_poll_ends_with_the_next_message() {
    let fake = fake().await;
    let poll = call(&fake, "getUpdates", json!({"timeout": 30}));
    let say = async {
        while fake.shared().world().queue.poller == 0 {
            tokio::task::yield_now().await;
        }
        fake.say(42, 42, "hi")
    };
    let both = timeout(Duration::from_secs(20), async { tokio::join!(poll, say) });
    let ((_, answer), _) = both.await.unwrap();
    assert_eq!(answer["result"][0]["message"]["text"], "hi");
}

#[tokio::test]
async fn text_over_the_limit_is_refused_by_one_unit() {
    let fake = fake().await;
    fake.say(42, 42, "hi");
    let send = |text: String| call(&fake, "sendMessage", json!({"chat_id": 42, "text": text}));
    assert_eq!(send("😀".repeat(2048)).await.0, 200);
    assert_eq!(send(format!("a{}", "😀".repeat(2048))).await.0, 400);
    let html = json!({"chat_id": 42, "text": format!("<b>{}</b>", "x".repeat(4096)), "parse_mode": "HTML"});
    assert_eq!(call(&fake, "sendMessage", html).await.0, 200);
    let blank = json!({"chat_id": 42, "text": " \n"});
    assert_eq!(
        refused(&fake, "sendMessage", blank).await,
        "Bad Request: message text is empty"
    );
}

#[tokio::test]
async fn invalid_destinations_are_refused() {
    let fake = fake().await;
    let asked = fake.say(42, 42, "hi");
    fake.say(-1001, 42, "hi");
    fake.set_blocked(43, true);
    for (method, body, description) in [
        (
            "sendMessage",
            json!({"chat_id": 9, "text": "x"}),
            "Bad Request: chat not found",
        ),
        (
            "sendMessage",
            json!({"chat_id": 43, "text": "x"}),
            "Forbidden: bot was blocked by the user",
        ),
        (
            "sendMessage",
            json!({"chat_id": 42, "text": "x", "reply_parameters": {"message_id": 999}}),
            "Bad Request: message to be replied not found",
        ),
        (
            "sendMessage",
            json!({"chat_id": -1001, "text": "x", "message_thread_id": 5}),
            "Bad Request: message thread not found",
        ),
        (
            "editMessageText",
            json!({"chat_id": 42, "message_id": 999, "text": "x"}),
            "Bad Request: message to edit not found",
        ),
        (
            "editMessageText",
            json!({"chat_id": 42, "message_id": asked, "text": "x"}),
            "Bad Request: message can't be edited",
        ),
        (
            "sendMessageDraft",
            json!({"chat_id": -1001, "draft_id": 1, "text": "x"}),
            "Bad Request: drafts are available in private chats only",
        ),
        (
            "sendMessageDraft",
            json!({"chat_id": 42, "draft_id": 0, "text": "x"}),
            "Bad Request: draft identifier must be non-zero",
        ),
        (
            "sendMessage",
            json!({"chat_id": 42, "text": "x", "reply_markup":
                {"inline_keyboard": [[{"text": "x", "callback_data": "y".repeat(65)}]]}}),
            "Bad Request: BUTTON_DATA_INVALID",
        ),
        (
            "getFile",
            json!({"file_id": "x"}),
            "Bad Request: invalid file_id",
        ),
    ] {
        assert_eq!(refused(&fake, method, body).await, description);
    }
    let reply = json!({"chat_id": 42, "text": "x",
        "reply_parameters": {"message_id": 999, "allow_sending_without_reply": true}});
    assert_eq!(call(&fake, "sendMessage", reply).await.0, 200);
}

#[tokio::test]
async fn edit_without_a_change_is_refused() {
    let fake = fake().await;
    fake.say(42, 42, "hi");
    let (_, sent) = call(&fake, "sendMessage", json!({"chat_id": 42, "text": "x"})).await;
    let id = &sent["result"]["message_id"];
    let edit = |text: &str| json!({"chat_id": 42, "message_id": id, "text": text});
    let description = refused(&fake, "editMessageText", edit("x")).await;
    assert!(description.starts_with("Bad Request: message is not modified"));
    assert_eq!(call(&fake, "editMessageText", edit("y")).await.0, 200);
    assert_eq!(fake.answers(42)[0].text, "y");
}

#[tokio::test]
async fn rate_limit_names_its_delay_and_early_calls_are_counted() {
    let fake = TelegramFake::start(TelegramOptions::default())
        .await
        .unwrap();
    fake.say(42, 42, "hi");
    let body = json!({"chat_id": 42, "text": "x"});
    for _ in 0..3 {
        assert_eq!(call(&fake, "sendMessage", body.clone()).await.0, 200);
    }
    let (status, answer) = call(&fake, "sendMessage", body.clone()).await;
    assert_eq!(
        (status, &answer["parameters"]["retry_after"]),
        (429, &json!(1))
    );
    assert_eq!(fake.early_calls(), 0);
    let fault = Fault::RateLimited {
        retry_after: 33.0,
        silent: false,
    };
    fake.faults().script("sendMessage", [fault]);
    let (_, answer) = call(&fake, "sendMessage", body.clone()).await;
    assert_eq!(answer["parameters"]["retry_after"], 33);
    assert_eq!(call(&fake, "sendMessage", body).await.0, 429);
    assert_eq!(fake.early_calls(), 1);
}

#[tokio::test]
async fn control_routes_act_as_people() {
    let fake = fake().await;
    let client = Client::builder().no_proxy().build().unwrap();
    let say = json!({"chat": 42, "from": 42, "text": "hi",
        "file": {"name": "a.txt", "media_type": "text/plain", "base64": "YWJj"}});
    let address = format!("{}/_fake/say", fake.base());
    let said: Value = client
        .post(address)
        .json(&say)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(said["message_id"], fake.messages(42)[0].id);
    let address = format!("{}/_fake/messages?chat=42", fake.base());
    let messages: Value = client
        .get(address)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(messages[0]["file"]["name"], "a.txt");
}

#[tokio::test]
async fn lost_reply_has_its_effect() {
    let fake = fake().await;
    fake.say(42, 42, "hi");
    fake.faults().script("sendMessage", [Fault::LoseReply]);
    let address = format!("{}/bot{}/sendMessage", fake.base(), fake.token());
    let client = Client::builder().no_proxy().build().unwrap();
    let sending = client
        .post(address)
        .json(&json!({"chat_id": 42, "text": "x"}))
        .send()
        .await;
    let failed = match sending {
        Ok(response) => response.bytes().await.is_err(),
        Err(_) => true,
    };
    assert!(failed);
    assert_eq!(fake.answers(42).len(), 1);
}

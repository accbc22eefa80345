//! Identity, receipts and downloads against the fake.

use bytes::Bytes;
use deerflow_chat_platforms::common::Fault;
use serde_json::Value;

use super::*;
use crate::feishu::setup::{Setup, TestSink, soon};

fn file(message: &str, key: &str, kind: &str) -> IncomingFile {
    IncomingFile {
        name: None,
        media_type: None,
        size: None,
        reference: json!({"message": message, "key": key, "type": kind}),
    }
}

#[tokio::test]
async fn identity_has_the_account_and_the_name() {
    let setup = Setup::start().await;
    let identity = setup.platform.identify().await.unwrap();
    assert_eq!(
        (identity.account.as_str(), identity.name.as_str()),
        ("cli_a", "Fake bot")
    );
    assert!(identity.warnings.is_empty());
}

#[tokio::test]
async fn identity_names_missing_scopes() {
    let setup = Setup::start().await;
    setup.fake.remove_scope("im:resource");
    let identity = setup.platform.identify().await.unwrap();
    assert_eq!(identity.warnings.len(), 1);
    assert!(identity.warnings[0].contains("im:resource"));
}

#[tokio::test]
async fn bot_without_information_is_a_warning() {
    let setup = Setup::start().await;
    let unknown = || Fault::Answer {
        status: 404,
        body: json!({"code": 404, "msg": "not found"}),
        headers: std::collections::HashMap::new(),
    };
    setup
        .fake
        .faults()
        .script("GET bot/v3/info", [unknown(), unknown()]);
    let identity = setup.platform.identify().await.unwrap();
    assert_eq!(
        (identity.name.as_str(), identity.warnings.len()),
        ("cli_a", 1)
    );
    let sink = TestSink::default();
    let stop = CancellationToken::new();
    let acting = async {
        soon(
            setup
                .fake
                .wait_until(|fake| (fake.connections() == 1).then_some(())),
        )
        .await;
        stop.cancel();
    };
    let (result, ()) = tokio::join!(setup.platform.listen(&sink, None, stop.clone()), acting);
    assert_eq!(result, Ok(()));
}

#[tokio::test]
async fn bot_information_that_stays_away_does_not_prevent_listening() {
    let setup = Setup::start().await;
    let faults = [Fault::Drop, Fault::Drop];
    setup.fake.faults().script("GET bot/v3/info", faults);
    let sink = TestSink::default();
    let stop = CancellationToken::new();
    let first = soon(setup.platform.listen(&sink, None, stop.clone())).await;
    assert!(matches!(first, Err(PlatformError::Unavailable(_))));
    let acting = async {
        soon(
            setup
                .fake
                .wait_until(|fake| (fake.connections() == 1).then_some(())),
        )
        .await;
        stop.cancel();
    };
    let (second, ()) = tokio::join!(setup.platform.listen(&sink, None, stop.clone()), acting);
    assert_eq!(second, Ok(()));
}

#[tokio::test]
async fn receipts_are_reactions() {
    let setup = Setup::start().await;
    let target = setup.target();
    for receipt in [
        Receipt::Received,
        Receipt::Working,
        Receipt::Done,
        Receipt::Failed,
    ] {
        setup.platform.show(&target, receipt).await.unwrap();
    }
    assert_eq!(setup.fake.messages()[0].reactions, ["OK", "DONE"]);
    let unknown = Target {
        reply_to: Some("om_unknown/../x".to_owned()),
        ..target
    };
    let result = setup.platform.show(&unknown, Receipt::Done).await;
    assert!(matches!(result, Err(PlatformError::Refused(_))));
}

#[tokio::test]
async fn files_of_messages_are_downloaded_within_the_limit() {
    let setup = Setup::start().await;
    let message = setup.target().reply_to.unwrap();
    setup
        .fake
        .add_file(&message, "img_1", "image", Bytes::from_static(b"PNG"));
    setup
        .fake
        .add_file(&message, "file_1", "pdf", Bytes::from(vec![7; 5000]));
    let platform = &setup.platform;
    let image = platform
        .download(&file(&message, "img_1", "image"), 100)
        .await;
    assert_eq!(image.unwrap(), "PNG");
    setup.fake.expire_tokens();
    let pdf = platform
        .download(&file(&message, "file_1", "file"), 5000)
        .await;
    assert_eq!(pdf.unwrap().len(), 5000);
    let large = platform
        .download(&file(&message, "file_1", "file"), 4999)
        .await;
    assert!(matches!(large, Err(PlatformError::Refused(text)) if text.contains("larger")));
    let unknown = platform
        .download(&file("om_x", "file_1", "file"), 5000)
        .await;
    assert!(matches!(unknown, Err(PlatformError::Refused(_))));
    let mut invalid = file(&message, "file_1", "file");
    invalid.reference = Value::Null;
    let invalid = platform.download(&invalid, 10).await;
    assert!(matches!(invalid, Err(PlatformError::Refused(_))));
}

//! Tests of the accepted forms of a decision and of invalid answers.

use serde_json::json;

use super::*;

fn edited(name: Option<&str>, args: &Value) -> Approval {
    let args = args.as_object().unwrap().clone();
    Approval::Edit {
        edited_action: EditedAction {
            name: name.map(str::to_owned),
            args,
        },
    }
}

fn rejected(message: Option<&str>) -> Approval {
    Approval::Reject {
        message: message.map(str::to_owned),
    }
}

#[test]
fn every_form_of_decision_is_parsed() {
    let args = json!({"to": "ann"});
    let respond = || Approval::Respond {
        message: "done by hand".to_owned(),
    };
    for (answer, wanted) in [
        (json!(true), Approval::Approve),
        (json!(" Yes\n"), Approval::Approve),
        (json!("approve"), Approval::Approve),
        (json!("OK."), Approval::Approve),
        (json!({"type": "approve"}), Approval::Approve),
        (
            json!({"decisions": [{"type": "APPROVE"}]}),
            Approval::Approve,
        ),
        (json!([{"type": "accept", "args": null}]), Approval::Approve),
        (
            json!({"type": "accept", "args": {"action": "send", "args": {}}}),
            Approval::Approve,
        ),
        (json!([true]), Approval::Approve),
        (json!(false), rejected(None)),
        (json!("No"), rejected(None)),
        (json!("reject"), rejected(None)),
        (json!({"decisions": [{"type": "reject"}]}), rejected(None)),
        (
            json!({"decisions": [{"type": "reject", "message": "too late"}]}),
            rejected(Some("too late")),
        ),
        (
            json!({"decisions": [{"type": "reject", "args": "too late"}]}),
            rejected(Some("too late")),
        ),
        (json!([{"type": "ignore", "args": null}]), rejected(None)),
        (
            json!({"decisions": [{"type": "respond", "message": "done by hand"}]}),
            respond(),
        ),
        (
            json!([{"type": "response", "args": "done by hand"}]),
            respond(),
        ),
        (
            json!({"decisions": [{"type": "edit", "edited_action": {"name": "send", "args": args}}]}),
            edited(Some("send"), &args),
        ),
        (
            json!({"decisions": [{"type": "edit", "editedAction": {"name": "send", "args": args}}]}),
            edited(Some("send"), &args),
        ),
        (
            json!({"decisions": [{"type": "edit", "args": {"action": "send", "args": args}}]}),
            edited(Some("send"), &args),
        ),
        (
            json!([{"type": "edit", "args": {"action": "send", "args": args}}]),
            edited(Some("send"), &args),
        ),
        (
            json!({"type": "edit", "args": {"args": args}}),
            edited(None, &args),
        ),
    ] {
        assert_eq!(Approval::read(&answer), Ok(wanted), "{answer}");
    }
}

#[test]
fn invalid_answer_is_an_error() {
    for answer in [
        json!(null),
        json!(1),
        json!(""),
        json!("maybe"),
        json!("yes, but not now"),
        json!({}),
        json!([]),
        json!({"decisions": []}),
        json!({"decisions": {"type": "approve"}}),
        json!({"decisions": [{"type": "approve"}, {"type": "approve"}]}),
        json!({"decisions": [{"type": "\u{430}pprove"}]}),
        json!({"decisions": [{"type": ["approve"]}]}),
        json!({"decisions": [null]}),
        json!([[true]]),
        json!({"true": true}),
        json!({"type": "respond"}),
        json!({"type": "response", "args": " "}),
        json!({"type": "edit"}),
        json!({"type": "edit", "edited_action": {"name": "send"}}),
        json!({"type": "edit", "edited_action": {"name": "send", "args": "to ann"}}),
        json!({"type": "edit", "edited_action": {"name": 1, "args": {}}}),
    ] {
        assert!(Approval::read(&answer).is_err(), "{answer}");
    }
    let long = Approval::read(&json!("ä".repeat(1_000)))
        .unwrap_err()
        .to_string();
    assert!(long.chars().count() < 200, "{long}");
}

#[test]
fn saved_decision_round_trips() {
    #[derive(Deserialize)]
    struct Saved(#[serde(deserialize_with = "deserialize_saved")] Option<Approval>);
    let args = json!({"to": "ann"});
    let respond = Approval::Respond {
        message: "done".to_owned(),
    };
    for decision in [
        Approval::Approve,
        edited(None, &args),
        edited(Some("send"), &args),
        rejected(Some("no")),
        respond,
    ] {
        let Saved(read) = serde_json::from_value(json!(decision)).unwrap();
        assert_eq!(read, Some(decision));
    }
    for (older, wanted) in [
        (json!(true), Some(Approval::Approve)),
        (json!(null), None),
        (json!("maybe"), None),
    ] {
        let Saved(read) = serde_json::from_value(older).unwrap();
        assert_eq!(read, wanted);
    }
}

#[test]
fn argument_edited_as_text_keeps_type() {
    let written = json!({"count": 1, "names": ["a"], "text": "7"})
        .as_object()
        .unwrap()
        .clone();
    let call = ToolCall::new("c", "send", written);
    for (args, wanted) in [
        (
            json!({"count": "2", "names": "[\"b\"]", "text": "8"}),
            json!({"count": 2, "names": ["b"], "text": "8"}),
        ),
        (
            json!({"count": "two", "new": "3"}),
            json!({"count": "two", "new": "3"}),
        ),
        (json!({"count": 2.5}), json!({"count": 2.5})),
    ] {
        let call = edited(None, &args).edited(&call).unwrap();
        assert_eq!(
            (call.id.as_str(), call.name.as_str(), json!(call.args)),
            ("c", "send", wanted)
        );
    }
    assert_eq!(Approval::Approve.edited(&call), None);
}

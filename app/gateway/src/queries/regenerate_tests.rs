//! Tests of regenerate.

use super::*;

fn human(id: &str, extra: Value) -> Message {
    Message::human(id).with(|body| {
        body.id = Some(id.to_owned());
        body.additional_kwargs = extra.as_object().cloned().unwrap_or_default();
    })
}

fn ai(id: &str) -> Message {
    Message::ai(id).with(|body| body.id = Some(id.to_owned()))
}

fn ids(turn: Turn<'_>) -> (&str, &str) {
    (
        turn.question.id.as_deref().unwrap_or_default(),
        turn.answer.id.as_deref().unwrap_or_default(),
    )
}

#[test]
fn only_the_last_turn_is_regenerated() {
    let hidden = human("hint", json!({ "hide_from_ui": true }));
    let reply = human(
        "reply",
        json!({ "hide_from_ui": true, "human_input_response": {} }),
    );
    let summary = human("sum", json!({})).with(|body| body.name = Some("summary".to_owned()));
    let talk = [
        human("q1", json!({})),
        ai("a1"),
        human("q2", json!({})),
        hidden.clone(),
        ai("a2"),
        ai("a3"),
    ];
    use NotReplayable as No;
    for (messages, id, expected) in [
        (&talk[..], "a3", Ok(("q2", "a3"))),
        (&talk[..], "a2", Err(No::NotLatestAnswer)),
        (&talk[..], "a1", Err(No::NotLatestAnswer)),
        (&talk[..], "q2", Err(No::NotLatestAnswer)),
        (&talk[..], "zz", Err(No::Unknown)),
        (&[ai("a")], "a", Err(No::NoQuestion)),
        (
            &[summary.clone(), hidden.clone(), ai("a")],
            "a",
            Err(No::NoQuestion),
        ),
        (
            &[human("q", json!({})), ai("a"), reply.clone(), ai("b")],
            "b",
            Ok(("reply", "b")),
        ),
        (&[], "a", Err(No::Unknown)),
    ] {
        assert_eq!(turn_of_answer(messages, id).map(ids), expected, "{id}");
    }
    for (messages, id, expected) in [
        (&talk[..], "q2", Ok(("q2", "a3"))),
        (&talk[..], "q1", Err(No::NotLatestQuestion)),
        (&talk[..], "a3", Err(No::NotLatestQuestion)),
        (&talk[..], "zz", Err(No::Unknown)),
        (&[ai("a"), human("q", json!({}))], "q", Err(No::NoAnswer)),
    ] {
        assert_eq!(turn_of_question(messages, id).map(ids), expected, "{id}");
    }
    assert_eq!(
        turn_of_answer(&talk, "a3").map(|turn| turn.visible_ids().join(" ")),
        Ok("q2 a2 a3".to_owned())
    );
}

#[test]
fn repeated_question_omits_middleware_additions() {
    let image = json!({ "type": "image_url", "image_url": { "url": "u" } });
    let extra = json!({ "original_user_content": "mine", "files": [1], "run_id": "r" });
    let question = human("q", extra).with(|body| {
        body.content = Content::Blocks(vec![
            json!({ "type": "text", "text": "<uploads>" }),
            json!("mine"),
            image.clone(),
        ]);
        body.name = Some("user-input".to_owned());
    });
    let messages = [question, ai("a")];
    let turn = turn_of_answer(&messages, "a").expect("a turn");
    let mine = json!({ "type": "text", "text": "mine" });
    let again = json!({
        "type": "human", "content": [mine, image], "additional_kwargs": { "files": [1], "run_id": "r" }, "id": "q", "name": "user-input",
    });
    assert_eq!(turn.original_question(), again);
    let other = json!({ "type": "text", "text": "other" });
    let edited = json!({
        "type": "human", "id": "n", "content": [other, image], "additional_kwargs": { "files": [1] }, "name": "user-input",
    });
    assert_eq!(turn.edited_question("n", "other"), edited);
}

//! Tests of decisions about several calls of one answer.

use super::*;

#[tokio::test]
async fn list_of_decisions_applies_in_call_order() {
    let (agent, outbox) = rig(&[("a", "ann"), ("b", "bob"), ("c", "cat")]);
    let interrupted = ask(&agent, "go").await;
    let edit = json!({"type": "edit", "edited_action": {"name": "mail", "args": {"to": "dan"}}});
    let decisions = json!([{"type": "approve"}, {"type": "reject"}, edit]);
    for several in [json!({ "decisions": decisions }), decisions.clone()] {
        outbox.lock().clear();
        let done = answer(&agent, &interrupted, several).await;
        assert_eq!(*outbox.lock(), ["a mail to ann", "c mail to dan"]);
        assert!(
            results(&done)[1].contains("approval.rejected"),
            "{:?}",
            results(&done)
        );
        let to: Vec<Value> = calls_of_answer(&done)
            .into_iter()
            .map(|(_, args)| args["to"].clone())
            .collect();
        assert_eq!(to, ["ann", "bob", "dan"]);
    }
    for wrong in [
        json!({"decisions": [{"type": "approve"}]}),
        json!([]),
        json!([true, true, true, true]),
    ] {
        let refused = answer(&agent, &interrupted, wrong).await;
        assert!(
            matches!(&refused.outcome, Err(AgentError::Resume(text)) if text.contains("3 calls")),
            "{:?}",
            refused.outcome
        );
    }
}

#[tokio::test]
async fn partial_decision_map_repeats_the_other_questions() {
    let (agent, outbox) = rig(&[("a", "ann"), ("b", "bob"), ("c", "cat")]);
    let interrupted = ask(&agent, "go").await;
    let id = |at: usize| open(&interrupted)[at]["id"].as_str().unwrap().to_owned();
    let edit = json!([{"type": "edit", "args": {"action": "mail", "args": {"to": "dan"}}}]);
    let some = answer(
        &agent,
        &interrupted,
        json!({ id(1): edit, id(2): "perhaps" }),
    )
    .await;
    assert_eq!(*outbox.lock(), ["b mail to dan"]);
    let open_questions = open(&some);
    assert_eq!(
        open_questions
            .iter()
            .map(|question| question["id"].as_str().unwrap())
            .collect::<Vec<_>>(),
        [id(0), id(2)]
    );
    assert_eq!(
        (
            open_questions[0]["value"].get("error").is_some(),
            open_questions[1]["value"].get("error").is_some()
        ),
        (false, true)
    );
    let done = answer(
        &agent,
        &some,
        json!({"decisions": [{"type": "approve"}, {"type": "approve"}]}),
    )
    .await;
    assert_eq!(
        *outbox.lock(),
        ["b mail to dan", "a mail to ann", "c mail to cat"]
    );
    let to: Vec<Value> = calls_of_answer(&done)
        .into_iter()
        .map(|(_, args)| args["to"].clone())
        .collect();
    assert_eq!(to, ["ann", "dan", "cat"]);
}

//! The person behind a client, whom the client asks for us (elicitation).

use std::time::Duration;

use harness::client::Question;
use rmcp::RoleServer;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema};
use rmcp::service::{ElicitationMode, Peer};
use serde_json::{Map, Value};

use super::outcome::told;

/// How long a person may think. Who thinks longer answers elsewhere: the question stays open.
const PATIENCE: Duration = Duration::from_secs(600);
/// The fields of the form.
const ALLOW: &str = "allow";
const ANSWER: &str = "answer";

/// Somebody who can be asked.
#[derive(Debug, Clone)]
pub(super) struct Person(Peer<RoleServer>);

impl Person {
    /// Whom this client asks, if it said that it can.
    pub(super) fn behind(peer: &Peer<RoleServer>) -> Option<Self> {
        peer.supported_elicitation_modes()
            .contains(&ElicitationMode::Form)
            .then(|| Self(peer.clone()))
    }

    /// Asks one question after the other until one is not answered; nothing where the first is not.
    pub(super) async fn answers(&self, open: &[Question]) -> Option<Value> {
        let mut answers = Map::new();
        for question in open {
            let form = ElicitRequestParams::FormElicitationParams {
                meta: None,
                message: format!("The agent asks for {}", told(question)),
                requested_schema: schema(question),
            };
            let answered = self
                .0
                .create_elicitation_with_timeout(form, Some(PATIENCE))
                .await;
            let answer = answered
                .inspect_err(|error| tracing::debug!(%error, "the client did not ask its person"))
                .ok();
            let Some(answer) = answer.and_then(|answer| read(answer, question)) else {
                break;
            };
            answers.insert(question.id.clone(), answer);
        }
        (!answers.is_empty()).then(|| answers.into())
    }
}

fn schema(question: &Question) -> ElicitationSchema {
    let form = ElicitationSchema::builder();
    match question.calls() {
        Some(_) => form.required_bool_with(ALLOW, |field| field.title("Allow it")),
        None => form.required_string_with(ANSWER, |field| field.title("Answer")),
    }
    .build_unchecked()
}

/// The answer, if there is one. What is neither yes nor no leaves the question open: the agent reads it.
fn read(result: ElicitResult, question: &Question) -> Option<Value> {
    let content = result.content.unwrap_or_default();
    match (result.action, question.calls()) {
        (ElicitationAction::Accept, Some(_)) => content
            .get(ALLOW)
            .filter(|answer| !answer.is_null())
            .cloned(),
        (ElicitationAction::Decline, Some(_)) => Some(false.into()),
        (ElicitationAction::Accept, None) => content[ANSWER].as_str().map(Into::into),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_accepted_form_without_an_answer_leaves_it_open() {
        let call = Question {
            id: "q".to_owned(),
            value: json!({ "action_requests": [{ "name": "bash", "args": {} }] }),
        };
        let words = Question {
            id: "q".to_owned(),
            value: json!("Which?"),
        };
        let result = |action, content: Value| ElicitResult::new(action).with_content(content);
        for (question, action, content, answer) in [
            (
                &call,
                ElicitationAction::Accept,
                json!({ "allow": true }),
                Some(json!(true)),
            ),
            (
                &call,
                ElicitationAction::Accept,
                json!({ "allow": false }),
                Some(json!(false)),
            ),
            (
                &call,
                ElicitationAction::Accept,
                json!({ "allow": "true" }),
                Some(json!("true")),
            ),
            (&call, ElicitationAction::Accept, json!({}), None),
            (
                &call,
                ElicitationAction::Accept,
                json!({ "allow": null }),
                None,
            ),
            (
                &call,
                ElicitationAction::Decline,
                json!({ "allow": true }),
                Some(json!(false)),
            ),
            (
                &call,
                ElicitationAction::Cancel,
                json!({ "allow": true }),
                None,
            ),
            (
                &words,
                ElicitationAction::Accept,
                json!({ "answer": "red" }),
                Some(json!("red")),
            ),
            (&words, ElicitationAction::Accept, json!([]), None),
            (
                &words,
                ElicitationAction::Decline,
                json!({ "answer": "red" }),
                None,
            ),
        ] {
            assert_eq!(
                read(result(action.clone(), content.clone()), question),
                answer,
                "{action:?} {content}"
            );
        }
    }
}

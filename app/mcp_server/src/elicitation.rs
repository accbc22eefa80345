//! Asks the user of a client through the client (MCP elicitation).

use std::time::Duration;

use harness::client::Question;
use rmcp::RoleServer;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema};
use rmcp::service::{ElicitationMode, Peer};
use serde_json::{Map, Value};

use crate::outcome::describe;

/// Time that the user has to answer. After that the question stays open and can be answered
/// elsewhere.
const ELICITATION_TIMEOUT: Duration = Duration::from_secs(600);
/// Names of the form fields.
const ALLOW: &str = "allow";
const ANSWER: &str = "answer";

/// Sends questions to the user of one client.
#[derive(Debug, Clone)]
pub(crate) struct Elicitor(Peer<RoleServer>);

impl Elicitor {
    /// Returns an elicitor if the client supports form elicitation.
    pub(crate) fn for_client(peer: &Peer<RoleServer>) -> Option<Self> {
        peer.supported_elicitation_modes()
            .contains(&ElicitationMode::Form)
            .then(|| Self(peer.clone()))
    }

    /// Asks the questions in order until one is not answered. Returns the answers, or `None` if
    /// there are none.
    pub(crate) async fn ask_all(&self, open: &[Question]) -> Option<Value> {
        let mut ask_all = Map::new();
        for question in open {
            let form = ElicitRequestParams::FormElicitationParams {
                meta: None,
                message: format!("The agent asks for {}", describe(question)),
                requested_schema: schema(question),
            };
            let answered = self
                .0
                .create_elicitation_with_timeout(form, Some(ELICITATION_TIMEOUT))
                .await;
            let answer = answered
                .inspect_err(|error| tracing::debug!(%error, "client could not ask its user"))
                .ok();
            let Some(answer) = answer.and_then(|answer| read(answer, question)) else {
                break;
            };
            ask_all.insert(question.id.clone(), answer);
        }
        (!ask_all.is_empty()).then(|| ask_all.into())
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

/// Extracts the answer, if there is one. A value that is neither yes nor no is passed on unchanged:
/// the agent rejects it.
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
    fn accepted_form_without_answer_leaves_question_open() {
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

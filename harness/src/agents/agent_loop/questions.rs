//! The questions that the calls of one batch asked, and the answers they have so far.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::calls::DueCall;
use crate::runtime::agent::AgentError;

/// The calls of a batch that wait for a person.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Questions(Vec<AskingCall>);

/// A call asks a person instead of giving a result.
#[derive(Debug, Clone, PartialEq)]
pub struct NewQuestion {
    /// The call.
    pub call_id: String,
    /// The question's id: the same wherever and however often it is asked.
    pub id: String,
    /// The question.
    pub question: Value,
    /// Whether it is if the call may be made at all.
    pub of_approval: bool,
}

impl NewQuestion {
    /// The question as clients see it.
    pub(super) fn shown(&self) -> Value {
        shown(&self.question, &self.id)
    }
}

/// A call that asked, or about which was asked. It is made again with all answers so far, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct AskingCall {
    call_id: String,
    question_id: String,
    question: Value,
    /// Whether the last question is if the call may be made.
    #[serde(default)]
    of_approval: bool,
    /// Whether the last question has its answer.
    answered: bool,
    answers: Vec<Value>,
    /// Never null, which would be none when it is read again.
    #[serde(default)]
    approval: Option<Value>,
}

impl Questions {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The open questions, when there are some and no call is ready to go on.
    pub(super) fn all_open(&self) -> Option<Vec<Value>> {
        (!self.0.is_empty() && self.0.iter().all(|call| !call.answered)).then(|| self.shown())
    }

    /// The open questions as clients see them.
    pub(super) fn shown(&self) -> Vec<Value> {
        self.open().map(AskingCall::shown).collect()
    }

    /// Whether some call is ready to go on.
    pub(super) fn any_answered(&self) -> bool {
        self.0.iter().any(|call| call.answered)
    }

    /// Which of the calls without a result are to be made: all, or those that have just got their answer.
    pub(super) fn due(&self, calls: Vec<DueCall>) -> Vec<DueCall> {
        if self.0.is_empty() {
            return calls;
        }
        let ready = |call: DueCall| {
            let asked = self.0.iter().find(|asked| asked.call_id == call.id() && asked.answered)?;
            Some(call.with_answers(asked.answers.clone(), asked.approval.clone()))
        };
        calls.into_iter().filter_map(ready).collect()
    }

    /// Takes answers: any value for a single open question, a map of question ids for several.
    pub(super) fn answer(&mut self, answers: Value) -> Result<(), AgentError> {
        let open = self.open().count();
        let by_id = answers.as_object().filter(|map| self.open().any(|call| map.contains_key(&call.question_id)));
        match (open, by_id) {
            (0, _) => {}
            (_, Some(map)) => {
                let map = map.clone();
                for call in self.0.iter_mut().filter(|call| !call.answered) {
                    if let Some(answer) = map.get(&call.question_id) {
                        call.take(answer.clone());
                    }
                }
            }
            (1, None) => {
                if let Some(call) = self.0.iter_mut().find(|call| !call.answered) {
                    call.take(answers);
                }
            }
            (_, None) => {
                return Err(AgentError::Resume(format!("{open} questions are open, so the answers must be a map of question ids")));
            }
        }
        Ok(())
    }

    /// The calls that were made again have ended or asked once more; new ones may have asked.
    pub(super) fn asked(&mut self, questions: Vec<NewQuestion>) {
        let gone_on = self.0.extract_if(.., |call| call.answered).collect::<Vec<_>>();
        for NewQuestion { call_id, id, question, of_approval } in questions {
            let before = gone_on.iter().find(|call| call.call_id == call_id);
            let (answers, approval) = before.map(|call| (call.answers.clone(), call.approval.clone())).unwrap_or_default();
            self.0.push(AskingCall { call_id, question_id: id, question, of_approval, answered: false, answers, approval });
        }
    }

    /// The open question of one call, as clients see it.
    pub(super) fn of(&self, call_id: &str) -> Vec<Value> {
        self.open().filter(|call| call.call_id == call_id).map(AskingCall::shown).collect()
    }

    fn open(&self) -> impl Iterator<Item = &AskingCall> {
        self.0.iter().filter(|call| !call.answered)
    }
}

/// The id of the question that a task asks after so many answers: the same wherever and however often it is asked.
pub(super) fn question_id(task: &str, answers: usize) -> String {
    let namespace = Uuid::parse_str(task).unwrap_or_default();
    Uuid::new_v5(&namespace, answers.to_string().as_bytes()).simple().to_string()
}

/// A question as clients see it.
fn shown(question: &Value, id: &str) -> Value {
    json!({ "value": question, "id": id })
}

impl AskingCall {
    fn shown(&self) -> Value {
        shown(&self.question, &self.question_id)
    }

    fn take(&mut self, answer: Value) {
        if self.of_approval {
            self.approval = Some(if answer.is_null() { Value::Bool(false) } else { answer });
        } else {
            self.answers.push(answer);
        }
        self.answered = true;
    }
}

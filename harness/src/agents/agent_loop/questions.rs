//! The questions that the calls of one batch asked, and the answers they have so far.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::calls::DueCall;
use crate::runtime::agent::AgentError;
use crate::tools::approval::{self, AnswerError, Approval};

/// Where a question that is asked again says why.
const ERROR: &str = "error";

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
    #[serde(default, deserialize_with = "approval::saved")]
    approval: Option<Approval>,
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
            let asked = self
                .0
                .iter()
                .find(|asked| asked.call_id == call.id() && asked.answered)?;
            Some(call.with_answers(asked.answers.clone(), asked.approval.clone()))
        };
        calls.into_iter().filter_map(ready).collect()
    }

    /// Takes answers: any value for a single open question, a map of question ids for several, and for several questions that all ask
    /// for an approval a list of decisions in their order. `knows` tells whether there is a tool of a name. An answer to a question of
    /// approval that is no decision leaves the question open.
    pub(super) fn answer(
        &mut self,
        answers: Value,
        knows: impl Fn(&str) -> bool,
    ) -> Result<(), AgentError> {
        let open = self.open().count();
        let by_id = answers
            .as_object()
            .filter(|map| self.open().any(|call| map.contains_key(&call.question_id)));
        let listed = approval::listed(&answers)
            .filter(|_| open > 1 && self.open().all(AskingCall::asks_for_approval));
        let waiting = self.0.iter_mut().filter(|call| !call.answered);
        match (by_id, listed) {
            (Some(map), _) => {
                for call in waiting {
                    if let Some(answer) = map.get(&call.question_id) {
                        call.take(answer.clone(), &knows);
                    }
                }
            }
            (None, Some(list)) if list.len() == open => {
                waiting
                    .zip(list)
                    .for_each(|(call, answer)| call.take(answer.clone(), &knows));
            }
            (None, Some(list)) => {
                let count = AnswerError::Count {
                    given: list.len(),
                    wanted: open,
                };
                return Err(AgentError::Resume(count.to_string()));
            }
            (None, None) if open > 1 => {
                return Err(AgentError::Resume(format!(
                    "{open} questions are open, so the answers must be a map of question ids"
                )));
            }
            (None, None) => waiting.for_each(|call| call.take(answers.clone(), &knows)),
        }
        Ok(())
    }

    /// The calls that were made again have ended or asked once more; new ones may have asked. The order of the calls stays.
    pub(super) fn asked(&mut self, mut questions: Vec<NewQuestion>) {
        for before in std::mem::take(&mut self.0) {
            if !before.answered {
                self.0.push(before);
            } else if let Some(at) = questions
                .iter()
                .position(|question| question.call_id == before.call_id)
            {
                let (answers, approval) = (before.answers, before.approval);
                self.0.push(AskingCall {
                    answers,
                    approval,
                    ..AskingCall::from(questions.remove(at))
                });
            }
        }
        self.0.extend(questions.into_iter().map(AskingCall::from));
    }

    /// The open question of one call, as clients see it.
    pub(super) fn of(&self, call_id: &str) -> Vec<Value> {
        self.open()
            .filter(|call| call.call_id == call_id)
            .map(AskingCall::shown)
            .collect()
    }

    fn open(&self) -> impl Iterator<Item = &AskingCall> {
        self.0.iter().filter(|call| !call.answered)
    }
}

/// The id of the question that a task asks after so many answers: the same wherever and however often it is asked.
pub(super) fn question_id(task: &str, answers: usize) -> String {
    let namespace = Uuid::parse_str(task).unwrap_or_default();
    Uuid::new_v5(&namespace, answers.to_string().as_bytes())
        .simple()
        .to_string()
}

/// A question as clients see it.
fn shown(question: &Value, id: &str) -> Value {
    json!({ "value": question, "id": id })
}

impl AskingCall {
    fn shown(&self) -> Value {
        shown(&self.question, &self.question_id)
    }

    /// Whether the answer to its question is a decision about a call, of this agent or of one inside the call.
    fn asks_for_approval(&self) -> bool {
        self.of_approval
            || self
                .question
                .get("action_requests")
                .is_some_and(Value::is_array)
    }

    fn take(&mut self, answer: Value, knows: impl Fn(&str) -> bool) {
        if !self.of_approval {
            self.answers.push(answer);
            self.answered = true;
            return;
        }
        match Approval::read(&answer).and_then(|approval| known(approval, knows)) {
            Ok(approval) => {
                self.approval = Some(approval);
                self.answered = true;
            }
            Err(error) => {
                tracing::warn!(call_id = %self.call_id, %error, "an answer is no decision, so the question stays open");
                if let Some(question) = self.question.as_object_mut() {
                    question.insert(ERROR.to_owned(), error.to_string().into());
                }
            }
        }
    }
}

impl From<NewQuestion> for AskingCall {
    fn from(
        NewQuestion {
            call_id,
            id,
            question,
            of_approval,
        }: NewQuestion,
    ) -> Self {
        Self {
            call_id,
            question_id: id,
            question,
            of_approval,
            answered: false,
            answers: Vec::new(),
            approval: None,
        }
    }
}

/// A decision that can be carried out: an edit names a tool that there is.
fn known(approval: Approval, knows: impl Fn(&str) -> bool) -> Result<Approval, AnswerError> {
    match &approval {
        Approval::Edit { edited_action }
            if edited_action
                .name
                .as_deref()
                .is_some_and(|name| !knows(name)) =>
        {
            Err(AnswerError::UnknownTool(
                edited_action.name.clone().unwrap_or_default(),
            ))
        }
        _ => Ok(approval),
    }
}

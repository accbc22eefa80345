//! Interrupts of one tool batch: the questions of its calls, and the answers so far.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::calls::PendingCall;
use crate::runtime::agent::AgentError;
use crate::tools::approval::{self, Approval, DecisionError};

/// Key under which a repeated question states why the last answer was rejected.
const ERROR: &str = "error";

/// Calls of a batch that wait for an answer of the user.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Interrupts(Vec<InterruptedCall>);

/// Question of a call to the user, returned instead of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct NewInterrupt {
    /// Id of the call.
    pub call_id: String,
    /// Id of the question, stable across attempts.
    pub id: String,
    /// Content of the question.
    pub question: Value,
    /// `true` if it requests approval of the call.
    pub of_approval: bool,
}

impl NewInterrupt {
    /// Returns the client-facing form.
    pub(super) fn view(&self) -> Value {
        view(&self.question, &self.id)
    }
}

/// Interrupted call. It is executed again with all answers so far, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct InterruptedCall {
    call_id: String,
    question_id: String,
    question: Value,
    /// `true` if the last question requests approval of the call.
    #[serde(default)]
    of_approval: bool,
    /// `true` if the last question has an answer.
    answered: bool,
    answers: Vec<Value>,
    #[serde(default, deserialize_with = "approval::deserialize_saved")]
    approval: Option<Approval>,
}

impl Interrupts {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the open questions if there are some and no call is ready to resume.
    pub(super) fn all_open(&self) -> Option<Vec<Value>> {
        (!self.0.is_empty() && self.0.iter().all(|call| !call.answered)).then(|| self.view())
    }

    /// Returns the open questions in their client-facing form.
    pub(super) fn view(&self) -> Vec<Value> {
        self.open().map(InterruptedCall::view).collect()
    }

    /// `true` if a call is ready to resume.
    pub(super) fn any_answered(&self) -> bool {
        self.0.iter().any(|call| call.answered)
    }

    /// Selects the calls to execute: all of them, or those whose question has just been answered.
    pub(super) fn ready_calls(&self, calls: Vec<PendingCall>) -> Vec<PendingCall> {
        if self.0.is_empty() {
            return calls;
        }
        let ready = |call: PendingCall| {
            let interrupted = self
                .0
                .iter()
                .find(|interrupted| interrupted.call_id == call.id() && interrupted.answered)?;
            Some(call.with_answers(interrupted.answers.clone(), interrupted.approval.clone()))
        };
        calls.into_iter().filter_map(ready).collect()
    }

    /// Applies answers: any value for a single open question; a map from question ids to values for
    /// several; a list of decisions in order if all questions request approval. `tool_exists`
    /// checks the tool name of an edited call. A question of approval stays open if its answer is
    /// not a decision.
    pub(super) fn answer(
        &mut self,
        answers: Value,
        tool_exists: impl Fn(&str) -> bool,
    ) -> Result<(), AgentError> {
        let open = self.open().count();
        let by_id = answers
            .as_object()
            .filter(|map| self.open().any(|call| map.contains_key(&call.question_id)));
        let listed = approval::decision_list(&answers)
            .filter(|_| open > 1 && self.open().all(InterruptedCall::asks_for_approval));
        let open_calls = self.0.iter_mut().filter(|call| !call.answered);
        match (by_id, listed) {
            (Some(map), _) => {
                for call in open_calls {
                    if let Some(answer) = map.get(&call.question_id) {
                        call.apply_answer(answer.clone(), &tool_exists);
                    }
                }
            }
            (None, Some(list)) if list.len() == open => {
                open_calls
                    .zip(list)
                    .for_each(|(call, answer)| call.apply_answer(answer.clone(), &tool_exists));
            }
            (None, Some(list)) => {
                let count = DecisionError::Count {
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
            (None, None) => {
                open_calls.for_each(|call| call.apply_answer(answers.clone(), &tool_exists))
            }
        }
        Ok(())
    }

    /// Records the outcome of the executed calls. Calls that have ended are removed, calls that ask
    /// again get their new question, and newly interrupted calls are added at the end.
    pub(super) fn record(&mut self, mut new: Vec<NewInterrupt>) {
        for before in std::mem::take(&mut self.0) {
            if !before.answered {
                self.0.push(before);
            } else if let Some(at) = new
                .iter()
                .position(|question| question.call_id == before.call_id)
            {
                let (answers, approval) = (before.answers, before.approval);
                self.0.push(InterruptedCall {
                    answers,
                    approval,
                    ..InterruptedCall::from(new.remove(at))
                });
            }
        }
        self.0.extend(new.into_iter().map(InterruptedCall::from));
    }

    /// Returns the open question of one call in its client-facing form.
    pub(super) fn of(&self, call_id: &str) -> Vec<Value> {
        self.open()
            .filter(|call| call.call_id == call_id)
            .map(InterruptedCall::view)
            .collect()
    }

    fn open(&self) -> impl Iterator<Item = &InterruptedCall> {
        self.0.iter().filter(|call| !call.answered)
    }
}

/// Returns the id of a task's question after this number of answers; stable across attempts.
pub(super) fn question_id(task: &str, answers: usize) -> String {
    let namespace = Uuid::parse_str(task).unwrap_or_default();
    Uuid::new_v5(&namespace, answers.to_string().as_bytes())
        .simple()
        .to_string()
}

/// Client-facing form of a question.
fn view(question: &Value, id: &str) -> Value {
    json!({ "value": question, "id": id })
}

impl InterruptedCall {
    fn view(&self) -> Value {
        view(&self.question, &self.question_id)
    }

    /// `true` if its question requests a decision about a call of this agent or of a nested agent.
    fn asks_for_approval(&self) -> bool {
        self.of_approval
            || self
                .question
                .get("action_requests")
                .is_some_and(Value::is_array)
    }

    fn apply_answer(&mut self, answer: Value, tool_exists: impl Fn(&str) -> bool) {
        if !self.of_approval {
            self.answers.push(answer);
            self.answered = true;
            return;
        }
        match Approval::read(&answer).and_then(|approval| validated(approval, tool_exists)) {
            Ok(approval) => {
                self.approval = Some(approval);
                self.answered = true;
            }
            Err(error) => {
                tracing::warn!(call_id = %self.call_id, %error, "an answer is not a valid decision, so the question stays open");
                if let Some(question) = self.question.as_object_mut() {
                    question.insert(ERROR.to_owned(), error.to_string().into());
                }
            }
        }
    }
}

impl From<NewInterrupt> for InterruptedCall {
    fn from(
        NewInterrupt {
            call_id,
            id,
            question,
            of_approval,
        }: NewInterrupt,
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

/// Validates that a decision can be applied: the tool of an edited call must exist.
fn validated(
    approval: Approval,
    tool_exists: impl Fn(&str) -> bool,
) -> Result<Approval, DecisionError> {
    match &approval {
        Approval::Edit { edited_action }
            if edited_action
                .name
                .as_deref()
                .is_some_and(|name| !tool_exists(name)) =>
        {
            Err(DecisionError::UnknownTool(
                edited_action.name.clone().unwrap_or_default(),
            ))
        }
        _ => Ok(approval),
    }
}

//! Continuation of a saved flow: answers, repetition after an error, and `goto`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::activation::{PendingVisit, Question, VisitStage};
use super::data::RunData;
use super::ledger::Ledger;
use super::machine::FlowMachine;
use crate::adapter::{ErrorCategory, FlowError};
use crate::compiled::{CompiledFlow, NodeIndex};

pub(super) fn refused(message: impl Into<String>) -> FlowError {
    FlowError::new("resume_invalid", ErrorCategory::Validation, message)
}

impl FlowMachine {
    /// Begins a new run on a saved machine: breakpoints release the current superstep, failed
    /// visits become pending with a new attempt count, and budgets begin anew. Sessions belong to a
    /// run, so those of the former one are forgotten.
    pub fn begin_run(&mut self, now_ms: u64) {
        self.reset_failures();
        self.run.steps = 0;
        self.run.released = true;
        self.run.halted = None;
        self.ledger = Ledger {
            started_at_ms: now_ms,
            ..Ledger::default()
        };
        self.sessions.clear();
    }

    /// Numbers the visits that have not begun after those that the values count.
    pub fn renumber(&mut self, data: &RunData) {
        for visit in &mut self.active {
            if let VisitStage::Pending(_) = visit.stage {
                visit.visit = data.visits(visit.node) + 1;
            }
        }
    }

    /// Applies answers to open questions. One open question takes any value, or a map from its id
    /// or node id. Several take such a map, which may omit some.
    ///
    /// # Errors
    /// `resume_invalid`, if no question is open, or if the answers name no open question.
    pub fn answer(&mut self, answers: Value) -> Result<(), FlowError> {
        let open = self.questions();
        let matched: BTreeMap<String, Value> = match (&open[..], &answers) {
            ([], _) => return Err(refused("the flow has no open question")),
            (questions, Value::Object(map)) if names_question(questions, map) => {
                let answer = |question: &Question| {
                    let value = map.get(&question.id).or_else(|| map.get(&question.node))?;
                    Some((question.id.clone(), value.clone()))
                };
                let known = |key: &String| {
                    questions
                        .iter()
                        .any(|question| question.id == *key || question.node == *key)
                };
                if let Some(key) = map.keys().find(|key| !known(key)) {
                    return Err(refused(format!("{key:?} is no open question of the flow")));
                }
                questions.iter().filter_map(answer).collect()
            }
            ([question], _) => [(question.id.clone(), answers)].into(),
            _ => {
                let ids: Vec<&str> = open.iter().map(|question| question.node.as_str()).collect();
                return Err(refused(format!(
                    "several questions are open; answer with a map from node ids ({}) or interrupt \
                     ids to values",
                    ids.join(", ")
                )));
            }
        };
        for visit in &mut self.active {
            let VisitStage::Asking(asking) = &mut visit.stage else {
                continue;
            };
            for question in &asking.questions {
                if let Some(answer) = matched.get(&question.id) {
                    asking.answers.insert(question.id.clone(), answer.clone());
                }
            }
            let is_open = asking.answers.is_empty()
                || (asking.nested.is_none() && asking.answers.len() < asking.questions.len());
            if is_open {
                continue;
            }
            let (nested, answer) = match asking.nested.take() {
                Some(nested) => (
                    Some(nested),
                    Some(Value::Object(
                        take(&mut asking.answers).into_iter().collect(),
                    )),
                ),
                None => (
                    None,
                    take(&mut asking.answers)
                        .into_iter()
                        .next()
                        .map(|(_, one)| one),
                ),
            };
            let asked = asking.asked;
            let pending = PendingVisit {
                attempt: 1,
                answer,
                asked,
                nested,
            };
            visit.stage = VisitStage::Pending(pending);
        }
        Ok(())
    }

    /// Makes these nodes the next superstep, on the values as they are. The flow goes on behind
    /// them. Questions and waiting nodes are dropped.
    ///
    /// # Errors
    /// `resume_invalid`, if the flow has no such node.
    pub fn goto(
        &mut self,
        flow: &CompiledFlow,
        data: &RunData,
        nodes: &[&str],
    ) -> Result<(), FlowError> {
        let found: Result<Vec<NodeIndex>, FlowError> = nodes
            .iter()
            .map(|node| {
                flow.find(node)
                    .ok_or_else(|| refused(format!("the flow has no node {node:?}")))
            })
            .collect();
        self.waiting.clear();
        // Tasks of the nodes that ran before in this superstep have other ids.
        self.step += 1;
        self.active = found?
            .into_iter()
            .map(|node| Self::activation(data, node))
            .collect();
        Ok(())
    }
}

fn names_question(questions: &[Question], map: &Map<String, Value>) -> bool {
    questions.len() > 1
        || questions
            .iter()
            .any(|question| map.contains_key(&question.id) || map.contains_key(&question.node))
}

fn take<T: Default>(value: &mut T) -> T {
    std::mem::take(value)
}

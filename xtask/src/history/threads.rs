//! Checks that accepted input is in its thread once, that rejected input is not, and that an answer
//! matches the model's output and what viewers read.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::{Finding, Numbered};
use super::line::{Message, Operation};
use super::runs::is_terminal;

/// State of a request.
#[derive(Debug)]
struct Asked<'a> {
    thread: &'a str,
    input: &'a str,
    run: Option<&'a str>,
    refused: bool,
}

/// Final state of all requests, threads and viewers.
#[derive(Debug, Default)]
struct FinalState<'a> {
    asked: BTreeMap<&'a str, Asked<'a>>,
    threads: BTreeMap<&'a str, (usize, &'a [Message])>,
    statuses: BTreeMap<&'a str, (usize, &'a str)>,
    model_answers: BTreeSet<&'a str>,
    /// Message fragments that each viewer received, and whether it received the end.
    pieces: BTreeMap<(&'a str, &'a str), String>,
    ended: BTreeSet<&'a str>,
    gapped: BTreeSet<&'a str>,
}

pub(super) fn analyze(history: &[Numbered], findings: &mut Vec<Finding>) {
    let mut state = FinalState::default();
    for (line, operation) in history {
        match operation {
            Operation::Asked {
                call,
                thread,
                input,
            } => {
                state.asked.insert(
                    call,
                    Asked {
                        thread,
                        input,
                        run: None,
                        refused: false,
                    },
                );
            }
            Operation::Accepted { call, run } => match state.asked.get_mut(call.as_str()) {
                Some(asked) => asked.run = Some(run),
                None => findings.push(Finding::at(
                    *line,
                    format!("call {call} is accepted and was never made"),
                )),
            },
            Operation::Refused { call } => {
                if let Some(asked) = state.asked.get_mut(call.as_str()) {
                    asked.refused = true;
                }
            }
            Operation::ReadThread { thread, messages } => {
                state.threads.insert(thread, (*line, messages));
            }
            Operation::ReadRun { run, status } => drop(state.statuses.insert(run, (*line, status))),
            Operation::Said { text } => drop(state.model_answers.insert(text)),
            Operation::Event {
                viewer,
                message: Some(message),
                text: Some(text),
                ..
            } => {
                state
                    .pieces
                    .entry((viewer, message))
                    .or_default()
                    .push_str(text);
            }
            Operation::Ended { viewer } => drop(state.ended.insert(viewer)),
            // Its message is no longer complete.
            Operation::Gap { viewer } => drop(state.gapped.insert(viewer)),
            _ => {}
        }
    }
    state.inputs(findings);
    state.answers(findings);
}

impl FinalState<'_> {
    fn inputs(&self, findings: &mut Vec<Finding>) {
        for (call, asked) in &self.asked {
            let Some((line, messages)) = self.threads.get(asked.thread) else {
                continue;
            };
            let there = messages
                .iter()
                .filter(|message| message.kind == "human" && message.text == asked.input)
                .count();
            let same = self
                .asked
                .values()
                .filter(|other| other.thread == asked.thread && other.input == asked.input);
            let (mut most, mut least) = (0, 0);
            for other in same {
                most += usize::from(!other.refused);
                least += usize::from(other.run.is_some_and(|run| self.stays(run, *line)));
            }
            let (thread, input) = (asked.thread, asked.input);
            if there < least {
                findings.push(Finding::at(
                    *line,
                    format!("call {call} was accepted, and {input:?} is not in thread {thread}"),
                ));
            } else if there > most {
                let why = if most == 0 {
                    "was refused"
                } else {
                    "was made once"
                };
                findings.push(Finding::at(
                    *line,
                    format!("call {call} {why}, and {input:?} is {there} times in thread {thread}"),
                ));
            }
        }
    }

    /// Reports whether the input of a run had to be in its thread at the time of the read: the run
    /// had ended, was not rolled back, and was not cancelled, which may have happened before its
    /// start.
    fn stays(&self, run: &str, read: usize) -> bool {
        let over = self
            .statuses
            .get(run)
            .filter(|(line, status)| *line < read && is_terminal(status));
        over.is_some_and(|(_, status)| !matches!(*status, "interrupted" | "gone"))
    }

    fn answers(&self, findings: &mut Vec<Finding>) {
        for (thread, (line, messages)) in &self.threads {
            for message in messages
                .iter()
                .filter(|message| message.kind == "ai" && !message.text.is_empty())
            {
                let text = message.text.as_str();
                let begins = |answer: &&str| answer.starts_with(text);
                if !self.model_answers.is_empty() && !self.model_answers.iter().any(begins) {
                    findings.push(Finding::at(
                        *line,
                        format!("thread {thread} has {text:?}, which the model did not return"),
                    ));
                }
                let Some(id) = message.id.as_deref() else {
                    continue;
                };
                for ((viewer, _), read) in self
                    .pieces
                    .iter()
                    .filter(|((viewer, of), _)| *of == id && !self.gapped.contains(viewer))
                {
                    let fits = if self.ended.contains(viewer) {
                        read == text
                    } else {
                        text.starts_with(read.as_str())
                    };
                    if !fits {
                        findings.push(Finding::at(
                            *line,
                            format!("thread {thread} has {text:?}, viewer {viewer} read {read:?}"),
                        ));
                    }
                }
            }
        }
    }
}

//! What was accepted is in its thread, once; what was refused is not; and an answer is what the model said and viewers read.

use std::collections::{BTreeMap, BTreeSet};

use super::line::{Message, Operation};
use super::runs::is_terminal;
use super::{Broken, Numbered};

/// What became of something that was asked.
#[derive(Debug)]
struct Asked<'a> {
    thread: &'a str,
    input: &'a str,
    run: Option<&'a str>,
    refused: bool,
}

/// The last words on everything.
#[derive(Debug, Default)]
struct Last<'a> {
    asked: BTreeMap<&'a str, Asked<'a>>,
    threads: BTreeMap<&'a str, (usize, &'a [Message])>,
    statuses: BTreeMap<&'a str, (usize, &'a str)>,
    said: BTreeSet<&'a str>,
    /// The pieces that each viewer read of each message, and whether it came to the end.
    pieces: BTreeMap<(&'a str, &'a str), String>,
    ended: BTreeSet<&'a str>,
    gapped: BTreeSet<&'a str>,
}

pub(super) fn judge(history: &[Numbered], broken: &mut Vec<Broken>) {
    let mut last = Last::default();
    for (line, operation) in history {
        match operation {
            Operation::Asked {
                call,
                thread,
                input,
            } => {
                last.asked.insert(
                    call,
                    Asked {
                        thread,
                        input,
                        run: None,
                        refused: false,
                    },
                );
            }
            Operation::Accepted { call, run } => match last.asked.get_mut(call.as_str()) {
                Some(asked) => asked.run = Some(run),
                None => broken.push(Broken::at(
                    *line,
                    format!("call {call} is accepted and was never made"),
                )),
            },
            Operation::Refused { call } => {
                if let Some(asked) = last.asked.get_mut(call.as_str()) {
                    asked.refused = true;
                }
            }
            Operation::ReadThread { thread, messages } => {
                drop(last.threads.insert(thread, (*line, messages)))
            }
            Operation::ReadRun { run, status } => drop(last.statuses.insert(run, (*line, status))),
            Operation::Said { text } => drop(last.said.insert(text)),
            Operation::Event {
                viewer,
                message: Some(message),
                text: Some(text),
                ..
            } => {
                last.pieces
                    .entry((viewer, message))
                    .or_default()
                    .push_str(text);
            }
            Operation::Ended { viewer } => drop(last.ended.insert(viewer)),
            // What it read is no whole any more.
            Operation::Gap { viewer } => drop(last.gapped.insert(viewer)),
            _ => {}
        }
    }
    last.inputs(broken);
    last.answers(broken);
}

impl Last<'_> {
    fn inputs(&self, broken: &mut Vec<Broken>) {
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
                broken.push(Broken::at(
                    *line,
                    format!("call {call} was accepted, and {input:?} is not in thread {thread}"),
                ));
            } else if there > most {
                let why = if most == 0 {
                    "was refused"
                } else {
                    "was made once"
                };
                broken.push(Broken::at(
                    *line,
                    format!("call {call} {why}, and {input:?} is {there} times in thread {thread}"),
                ));
            }
        }
    }

    /// Whether the input of a run had to be in its thread when that was read: the run was over by then, was not undone, and was
    /// not told to stop, perhaps before it began.
    fn stays(&self, run: &str, read: usize) -> bool {
        let over = self
            .statuses
            .get(run)
            .filter(|(line, status)| *line < read && is_terminal(status));
        over.is_some_and(|(_, status)| !matches!(*status, "interrupted" | "gone"))
    }

    fn answers(&self, broken: &mut Vec<Broken>) {
        for (thread, (line, messages)) in &self.threads {
            for message in messages
                .iter()
                .filter(|message| message.kind == "ai" && !message.text.is_empty())
            {
                let text = message.text.as_str();
                let begins = |said: &&str| said.starts_with(text);
                if !self.said.is_empty() && !self.said.iter().any(begins) {
                    broken.push(Broken::at(
                        *line,
                        format!("thread {thread} has {text:?}, which nobody said"),
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
                        broken.push(Broken::at(
                            *line,
                            format!("thread {thread} has {text:?}, viewer {viewer} read {read:?}"),
                        ));
                    }
                }
            }
        }
    }
}

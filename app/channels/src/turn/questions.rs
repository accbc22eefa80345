//! Questions of runs to people, and their answers.

use deerflow_domain::channels::OpenQuestion;
use harness::client::Question;
use harness::ids::RunId;
use harness::runtime::threads::ThreadView;
use uuid::Uuid;

use super::answer::Clarification;
use crate::platform::{Button, floor_boundary};

/// Maximum number of buttons and length of their labels.
const MAX_BUTTONS: usize = 8;
const MAX_LABEL_CHARS: usize = 60;
/// Maximum length of shown arguments of a call.
const MAX_ARGUMENTS: usize = 1_000;
/// Answers to a question about tool calls.
const DECISIONS: [&str; 2] = ["approve", "reject"];

/// Question as it is sent and stored.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Asked {
    /// Text.
    pub(super) text: String,
    /// Buttons.
    pub(super) buttons: Vec<Button>,
    /// Stored question.
    pub(super) open: OpenQuestion,
}

/// Builds the question of an agent that ended its run with it.
pub(super) fn of_clarification(
    row: Uuid,
    run_id: RunId,
    asker: &str,
    question: Clarification,
) -> Asked {
    let token = token_of(row);
    Asked {
        text: question.text,
        buttons: buttons(&token, &question.options),
        open: OpenQuestion {
            run_id,
            interrupt: None,
            asker: asker.to_owned(),
            options: question.options,
            token,
        },
    }
}

/// Builds the question of an interrupted run.
pub(super) fn of_interrupt(row: Uuid, run_id: RunId, asker: &str, question: &Question) -> Asked {
    let token = token_of(row);
    let (text, options) = match question.calls() {
        Some(calls) => {
            let mut text = "The agent asks for permission:".to_owned();
            for call in calls {
                let mut arguments = call.arguments.to_string();
                if arguments.len() > MAX_ARGUMENTS {
                    arguments.truncate(floor_boundary(&arguments, MAX_ARGUMENTS));
                    arguments.push('\u{2026}');
                }
                // A longer fence than any in the arguments.
                text.push_str(&format!(
                    "\n\n**{}**\n\n````\n{}\n````",
                    call.name.replace('*', ""),
                    arguments.replace("````", "```")
                ));
                if let Some(reason) = call.reason {
                    text.push_str(&format!("\n{reason}"));
                }
            }
            if let Some(error) = question.error() {
                text.push_str(&format!("\n\nThe last answer was not understood: {error}"));
            }
            text.push_str("\n\nAnswer with `approve` or `reject`.");
            (text, DECISIONS.map(str::to_owned).to_vec())
        }
        None => (question.text(), Vec::new()),
    };
    Asked {
        text,
        buttons: buttons(&token, &options),
        open: OpenQuestion {
            run_id,
            interrupt: Some(question.id.clone()),
            asker: asker.to_owned(),
            options,
            token,
        },
    }
}

/// Returns the open interrupts of a thread.
pub(super) fn open_interrupts(view: &ThreadView) -> Vec<Question> {
    view.interrupts
        .values()
        .filter_map(|questions| serde_json::from_value::<Vec<Question>>(questions.clone()).ok())
        .flatten()
        .collect()
}

/// Returns the answer that a press gives to a question; `None` if it belongs to another one.
pub(super) fn pressed(question: &OpenQuestion, data: &str) -> Option<String> {
    let (token, at) = data.strip_prefix("q:")?.split_once(':')?;
    if token != question.token {
        return None;
    }
    question.options.get(at.parse::<usize>().ok()?).cloned()
}

fn token_of(row: Uuid) -> String {
    let token = Uuid::new_v5(&row, b"question").simple().to_string();
    token[..16].to_owned()
}

fn buttons(token: &str, options: &[String]) -> Vec<Button> {
    if options.len() > MAX_BUTTONS {
        return Vec::new();
    }
    let button = |(at, label): (usize, &String)| Button {
        label: label.chars().take(MAX_LABEL_CHARS).collect(),
        data: format!("q:{token}:{at}"),
    };
    options.iter().enumerate().map(button).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(options: &[&str]) -> Asked {
        let question = Clarification {
            text: "Which?".to_owned(),
            options: options.iter().map(|&option| option.to_owned()).collect(),
        };
        let row = Uuid::from_u128(1);
        of_clarification(row, Uuid::from_u128(2).into(), "U1", question)
    }

    #[test]
    fn press_selects_its_option() {
        let asked = asked(&["red", "green"]);
        assert_eq!(asked.buttons[1].label, "green");
        assert!(asked.buttons[1].data.len() <= 64);
        assert_eq!(
            pressed(&asked.open, &asked.buttons[1].data).as_deref(),
            Some("green")
        );
    }

    #[test]
    fn press_of_another_question_is_no_answer() {
        let asked = asked(&["red"]);
        for data in [
            "q:other:0",
            "q:",
            "stop:1",
            &format!("q:{}:9", asked.open.token),
        ] {
            assert_eq!(pressed(&asked.open, data), None, "{data}");
        }
    }
}

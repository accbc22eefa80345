//! Presses, stops and replies by people who were not asked.

use serde_json::json;

use super::{Verdict, expect};
use crate::core_tests::rig::{Rig, within};
use crate::platform::{EventBody, Press};
use crate::testkit::MemoryMessage;
use crate::words;

pub(super) async fn run(rig: &Rig, case: u64, kind: u64, variant: u64) -> Verdict {
    let scene = Scene {
        rig,
        // Groups and direct chats take turns.
        chat: format!("{}{case}", ["g-press", "c-press"][variant as usize % 2]),
        case,
    };
    match kind {
        0 => scene.stops(Attempt::Button).await,
        1 => scene.stops(Attempt::Command).await,
        2 => scene.stops(Attempt::ForeignChat).await,
        3 => scene.answers(0, 1 + variant as usize % 3).await,
        4 => scene.answers(1, 1 + variant as usize % 3).await,
        _ => scene.forged(variant).await,
    }
}

/// Way in which a stranger tries to stop an answer.
#[derive(Debug, Clone, Copy)]
enum Attempt {
    Button,
    Command,
    /// The data of the button, from another chat.
    ForeignChat,
}

struct Scene<'a> {
    rig: &'a Rig,
    chat: String,
    case: u64,
}

impl Scene<'_> {
    fn messages(&self) -> Vec<MemoryMessage> {
        let messages = self.rig.platform.messages().into_iter();
        messages
            .filter(|message| message.chat == self.chat)
            .collect()
    }

    async fn confirmed(&self, count: usize) -> String {
        let platform = &self.rig.platform;
        let texts = within(platform.wait_for(|platform| {
            let texts = platform.confirmed();
            (texts.len() >= count).then_some(texts)
        }));
        texts.await.pop().unwrap_or_default()
    }

    /// Presses with this data and returns the confirmation.
    async fn press(&self, person: &str, chat: &str, message: Option<&str>, data: &str) -> String {
        let platform = &self.rig.platform;
        let before = platform.confirmed().len();
        let mut event = platform.message(chat, person, "");
        event.body = EventBody::Press(Press {
            data: data.to_owned(),
            message: message.map(str::to_owned),
        });
        platform.deliver(event);
        self.confirmed(before + 1).await
    }

    async fn stops(&self, attempt: Attempt) -> Verdict {
        let text = format!("Complete {}.", self.case);
        let slow = format!("[[slow 40x10ms]] then say {text}");
        self.rig.platform.say(&self.chat, "ann", &slow);
        let shown = within(self.rig.platform.wait_for(|_| {
            let first = self.messages().into_iter().next()?;
            (!first.buttons.is_empty()).then_some(first)
        }))
        .await;
        let (stop, message) = (&shown.buttons[0], Some(shown.id.as_str()));
        match attempt {
            Attempt::Button => {
                let answer = self.press("mallory", &self.chat, message, stop).await;
                expect(answer == words::NOT_YOURS, format!("confirmed {answer}"))?;
            }
            Attempt::ForeignChat => {
                let chat = format!("c-foreign{}", self.case);
                let answer = self.press("mallory", &chat, None, stop).await;
                expect(answer == words::NOT_YOURS, format!("confirmed {answer}"))?;
            }
            Attempt::Command => {
                self.rig.platform.say(&self.chat, "mallory", "/stop");
            }
        }
        let of_case = within(self.rig.platform.wait_for(|platform| {
            let texts = platform.texts(&self.chat);
            texts
                .iter()
                .any(|text| text == &text_of(self.case))
                .then_some(texts)
        }));
        let texts = of_case.await;
        let is_stopped = texts.iter().any(|text| text.contains(words::STOPPED));
        expect(!is_stopped, format!("stopped: {texts:?}"))
    }

    async fn answers(&self, button: usize, presses: usize) -> Verdict {
        let call = json!({"question": "Which colour?", "options": ["red", "green"],
            "clarification_type": "approach_choice"});
        let ask = format!("[[tool:ask_clarification {call}]] then say Painted.");
        self.rig.platform.say(&self.chat, "ann", &ask);
        let asked = within(
            self.rig
                .platform
                .wait_for(|_| self.messages().into_iter().find(|message| message.is_final)),
        )
        .await;
        let (data, message) = (asked.buttons[button].clone(), Some(asked.id.as_str()));
        for _ in 0..presses {
            let answer = self.press("mallory", &self.chat, message, &data).await;
            expect(answer == words::NOT_YOURS, format!("confirmed {answer}"))?;
        }
        let texts = self.rig.platform.texts(&self.chat);
        expect(texts.len() == 1, format!("a run answered: {texts:?}"))?;
        let answer = self.press("ann", &self.chat, message, &data).await;
        expect(
            answer == ["red", "green"][button],
            format!("ann's: {answer}"),
        )?;
        self.rig.answers(&self.chat, 2).await;
        // The button was used.
        for person in ["ann", "mallory"] {
            let answer = self.press(person, &self.chat, message, &data).await;
            expect(answer == words::EXPIRED, format!("{person}'s: {answer}"))?;
        }
        let texts = self.rig.platform.texts(&self.chat);
        expect(texts.len() == 2, format!("a run answered twice: {texts:?}"))
    }

    /// Presses with data that no button has.
    async fn forged(&self, variant: u64) -> Verdict {
        let data = match variant % 5 {
            0 => "stop:00000000-0000-0000-0000-000000000000".to_owned(),
            1 => String::new(),
            2 => "\u{0}\u{202e}{\"resume\":true}".to_owned(),
            3 => "x".repeat(5_000),
            _ => format!("q:{}:0", self.case),
        };
        let answer = self.press("mallory", &self.chat, Some("1"), &data).await;
        expect(answer == words::EXPIRED, format!("confirmed {answer}"))?;
        let texts = self.rig.platform.texts(&self.chat);
        expect(texts.is_empty(), format!("answered {texts:?}"))
    }
}

fn text_of(case: u64) -> String {
    format!("Complete {case}.")
}

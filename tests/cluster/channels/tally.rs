//! Count of messages, lost answers and repeated answers per platform.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use deerflow_tests::chat_fakes::{ChatFakes, PLATFORMS};

/// Platforms that have no idempotency keys for a new message: what they received and the bot did
/// not record before its death is sent again.
const WITHOUT_KEYS: [&str; 3] = ["telegram", "dingtalk", "wecom"];

/// Message of a person.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Asked {
    pub(super) platform: &'static str,
    pub(super) chat: u32,
    pub(super) round: usize,
}

impl Asked {
    /// Returns the answer, whose text no other message has.
    pub(super) fn answer(&self) -> String {
        format!("round {} chat {} {}.", self.round, self.chat, self.platform)
    }
}

/// Messages of persons, and the repetitions of their answers that deaths permit.
#[derive(Debug, Default)]
pub(super) struct Tally {
    asked: Vec<Asked>,
    /// Number of deaths at which the sending of an answer had begun and was not recorded.
    unrecorded: HashMap<Asked, usize>,
    swallowed: HashMap<&'static str, usize>,
    chats: u32,
}

/// Figures of one platform.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Figures {
    pub(super) messages: usize,
    pub(super) lost: Vec<Asked>,
    /// Answers beyond the first.
    pub(super) repeated: usize,
    /// Answers at whose sending a process died.
    pub(super) unrecorded: usize,
    /// Replies that the platform swallowed.
    pub(super) swallowed: usize,
    /// Repeated answers that neither a death nor a swallowed reply explains.
    pub(super) unexplained: usize,
}

impl Tally {
    /// Adds a message that was said.
    pub(super) fn add(&mut self, asked: Asked) {
        self.chats = self.chats.max(asked.chat);
        self.asked.push(asked);
    }

    /// Returns the messages of a round.
    pub(super) fn of_round(&self, round: usize) -> Vec<Asked> {
        let of_round = self.asked.iter().filter(|asked| asked.round == round);
        of_round.cloned().collect()
    }

    /// Notes bodies of outbox rows, with their platforms, whose sending had begun at a death. A body
    /// has several answers if their messages arrived together, as after a redelivery.
    pub(super) fn died(&mut self, rows: &[(String, String)]) {
        for (platform, body) in rows {
            let platform = PLATFORMS.iter().find(|known| *known == platform);
            let Some(platform) = platform else { continue };
            for asked in asked_in(platform, body) {
                *self.unrecorded.entry(asked).or_default() += 1;
            }
        }
    }

    /// Notes replies that a platform swallowed.
    pub(super) fn swallowed(&mut self, platform: &'static str, replies: usize) {
        *self.swallowed.entry(platform).or_default() += replies;
    }

    /// Returns those of some messages that have no answer.
    pub(super) fn unanswered(&self, fakes: &ChatFakes, of: &[Asked]) -> Vec<Asked> {
        let mut shown = HashMap::new();
        for platform in PLATFORMS {
            if of.iter().any(|asked| asked.platform == platform) {
                shown.extend(self.shown(fakes, platform));
            }
        }
        let missing = of.iter().filter(|asked| !shown.contains_key(asked));
        missing.cloned().collect()
    }

    /// Returns the messages of a round with more than one answer.
    pub(super) fn repeated(&self, fakes: &ChatFakes, round: usize) -> Vec<Asked> {
        let shown = PLATFORMS.map(|platform| self.shown(fakes, platform));
        let repeated = shown.into_iter().flatten().filter(|(_, count)| *count > 1);
        let of_round = repeated.filter(|(asked, _)| asked.round == round);
        of_round.map(|(asked, _)| asked).collect()
    }

    /// Counts the answers of all platforms.
    pub(super) fn count(&self, fakes: &ChatFakes) -> Report {
        let mut report = Report::default();
        for platform in PLATFORMS {
            let shown = self.shown(fakes, platform);
            let mut figures = Figures {
                swallowed: self.swallowed.get(platform).copied().unwrap_or_default(),
                ..Figures::default()
            };
            for asked in self.asked.iter().filter(|asked| asked.platform == platform) {
                figures.messages += 1;
                let permitted = self.unrecorded.get(asked).copied().unwrap_or_default();
                figures.unrecorded += permitted;
                match shown.get(asked) {
                    None => figures.lost.push(asked.clone()),
                    Some(count) => {
                        figures.repeated += count - 1;
                        figures.unexplained += unexplained(platform, count - 1, permitted);
                    }
                }
            }
            if WITHOUT_KEYS.contains(&platform) {
                figures.unexplained = figures.unexplained.saturating_sub(figures.swallowed);
            }
            report.0.insert(platform, figures);
        }
        report
    }

    fn shown(&self, fakes: &ChatFakes, platform: &'static str) -> HashMap<Asked, usize> {
        let mut shown = HashMap::new();
        for (chat, text) in fakes.answers(platform, self.chats) {
            let answers = asked_in(platform, &text);
            for asked in answers.into_iter().filter(|asked| asked.chat == chat) {
                *shown.entry(asked).or_default() += 1;
            }
        }
        shown
    }
}

/// Returns the number of repetitions that no death explains.
fn unexplained(platform: &str, repeated: usize, deaths: usize) -> usize {
    if WITHOUT_KEYS.contains(&platform) {
        repeated.saturating_sub(deaths)
    } else {
        repeated
    }
}

/// Returns the messages whose complete answers a text contains.
fn asked_in(platform: &'static str, text: &str) -> Vec<Asked> {
    let ending = format!(" {platform}.");
    let answers = text.split("round ").skip(1).filter_map(|part| {
        let (numbers, _) = part.split_once(&ending)?;
        let (round, chat) = numbers.split_once(" chat ")?;
        Some(Asked {
            platform,
            chat: chat.parse().ok()?,
            round: round.parse().ok()?,
        })
    });
    let mut answers: Vec<Asked> = answers.collect();
    answers.dedup();
    answers
}

/// Figures per platform.
#[derive(Debug, Default)]
pub(super) struct Report(pub(super) BTreeMap<&'static str, Figures>);

impl Report {
    /// Asserts that no answer is missing, and none is repeated without a death or a swallowed reply
    /// that explains it.
    #[track_caller]
    pub(super) fn assert_exact(&self) {
        for (platform, figures) in &self.0 {
            let lost: Vec<String> = figures.lost.iter().map(Asked::answer).collect();
            assert!(lost.is_empty(), "{platform} lost {lost:?}\n{self}");
            assert_eq!(figures.unexplained, 0, "{platform}\n{self}");
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<10}{:>10}{:>8}{:>10}{:>12}{:>11}{:>13}",
            "platform", "messages", "lost", "repeated", "unrecorded", "swallowed", "unexplained"
        )?;
        for (platform, figures) in &self.0 {
            writeln!(
                f,
                "{:<10}{:>10}{:>8}{:>10}{:>12}{:>11}{:>13}",
                platform,
                figures.messages,
                figures.lost.len(),
                figures.repeated,
                figures.unrecorded,
                figures.swallowed,
                figures.unexplained
            )?;
        }
        Ok(())
    }
}

#[test]
fn only_complete_answers_are_counted() {
    let text = "round 1 chat 2 slack. and round 3 chat 4 slack";
    let found = asked_in("slack", text);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].answer(), "round 1 chat 2 slack.");
    assert_eq!(asked_in("telegram", text), []);
}

#[test]
fn repetition_is_explained_only_without_keys_and_by_a_death() {
    assert_eq!(unexplained("telegram", 2, 1), 1);
    assert_eq!(unexplained("slack", 1, 1), 1);
}

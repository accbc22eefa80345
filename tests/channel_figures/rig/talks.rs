//! Conversations that stream one answer after another.

use std::time::{Duration, Instant};

use super::model::asked;
use super::platforms::{PlatformName, Platforms};

/// Interval at which answers are read.
const POLL: Duration = Duration::from_secs(2);
/// Time within which the last answers arrive.
const LIMIT: Duration = Duration::from_secs(240);

/// Conversation.
#[derive(Debug)]
struct Talk {
    platform: PlatformName,
    conversation: usize,
    question: u64,
    answered: usize,
    is_open: bool,
}

/// Conversations on several platforms.
#[derive(Debug)]
pub(crate) struct Talks {
    talks: Vec<Talk>,
    last_question: u64,
}

/// Returns the text with which the answer to a question ends.
pub(crate) fn end_of(question: u64) -> String {
    format!("End of answer {question}.")
}

impl Talks {
    /// Creates a number of conversations on each platform.
    pub(crate) fn new(names: &[PlatformName], each: usize) -> Self {
        let places = names
            .iter()
            .flat_map(|name| (0..each).map(|conversation| (*name, conversation)));
        let talks = places.map(|(platform, conversation)| Talk {
            platform,
            conversation,
            question: 0,
            answered: 0,
            is_open: false,
        });
        Self {
            talks: talks.collect(),
            last_question: 0,
        }
    }

    /// Returns the number of answers of a platform.
    pub(crate) fn answered(&self, name: PlatformName) -> usize {
        let of_platform = self.talks.iter().filter(|talk| talk.platform == name);
        of_platform.map(|talk| talk.answered).sum()
    }

    /// Keeps all conversations busy until `is_over`, then waits for the last answers.
    ///
    /// # Errors
    /// Returns an error if an answer does not arrive.
    pub(crate) async fn stream(
        &mut self,
        platforms: &Platforms,
        mut is_over: impl FnMut() -> bool,
    ) -> anyhow::Result<()> {
        let mut over_since = None;
        loop {
            if over_since.is_none() && is_over() {
                over_since = Some(Instant::now());
            }
            for talk in &mut self.talks {
                if talk.is_open && talk.is_answered(platforms) {
                    (talk.is_open, talk.answered) = (false, talk.answered + 1);
                }
                if !talk.is_open && over_since.is_none() {
                    self.last_question += 1;
                    talk.question = self.last_question;
                    let text = asked(talk.question);
                    talk.is_open = platforms.say(talk.platform, talk.conversation, &text);
                }
            }
            let open = self.talks.iter().filter(|talk| talk.is_open);
            let Some(first) = open.clone().next() else {
                if over_since.is_some() {
                    return Ok(());
                }
                tokio::time::sleep(POLL).await;
                continue;
            };
            anyhow::ensure!(
                over_since.is_none_or(|since| since.elapsed() < LIMIT),
                "{} answers are missing, such as that of {first:?}: {:?}",
                open.count(),
                platforms.texts(first.platform, first.conversation).last()
            );
            tokio::time::sleep(POLL).await;
        }
    }
}

impl Talk {
    fn is_answered(&self, platforms: &Platforms) -> bool {
        let end = end_of(self.question);
        let texts = platforms.texts(self.platform, self.conversation);
        texts.iter().any(|text| text.contains(&end))
    }
}

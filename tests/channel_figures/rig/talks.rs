//! Conversations that stream one answer after another.

use std::time::{Duration, Instant};

use super::model::asked;
use super::platforms::{PlatformName, Platforms};

/// Interval at which answers are read.
const POLL: Duration = Duration::from_secs(2);
/// Time in which at least one more answer arrives.
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

    /// Begins a new thread in each conversation.
    pub(crate) fn begin_threads(&self, platforms: &Platforms) {
        for talk in &self.talks {
            platforms.say(talk.platform, talk.conversation, "/new");
        }
    }

    /// Keeps all conversations busy until `is_over`, then waits for the last answers. Each
    /// conversation has at least one.
    ///
    /// # Errors
    /// Returns an error if an answer does not arrive.
    pub(crate) async fn stream(
        &mut self,
        platforms: &Platforms,
        mut is_over: impl FnMut() -> bool,
    ) -> anyhow::Result<()> {
        let (mut over, mut last_answer) = (false, Instant::now());
        loop {
            for talk in &mut self.talks {
                if talk.is_open && talk.is_answered(platforms) {
                    (talk.is_open, talk.answered) = (false, talk.answered + 1);
                    last_answer = Instant::now();
                }
                if !talk.is_open && !over {
                    self.last_question += 1;
                    talk.question = self.last_question;
                    let text = asked(talk.question);
                    talk.is_open = platforms.say(talk.platform, talk.conversation, &text);
                }
            }
            over = over || is_over();
            let open = self.talks.iter().filter(|talk| talk.is_open);
            let Some(first) = open.clone().next() else {
                if over {
                    return Ok(());
                }
                tokio::time::sleep(POLL).await;
                continue;
            };
            anyhow::ensure!(
                last_answer.elapsed() < LIMIT,
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

//! Views of a fake that tests read.

use serde_json::Value;

use crate::common::{Calls, Faults};

use super::people::People;
use super::world::{Draft, Posted, PressAnswer};

impl People {
    /// Returns the token of the bot.
    pub fn token(&self) -> &str {
        &self.shared().options.token
    }

    /// Returns the record of calls.
    pub fn calls(&self) -> &Calls {
        &self.shared().calls
    }

    /// Returns the scripted faults.
    pub fn faults(&self) -> &Faults {
        &self.shared().faults
    }

    /// Returns the messages of a chat as people see them, in the order of their ids.
    pub fn messages(&self, chat: i64) -> Vec<Posted> {
        let world = self.shared().world();
        let posts = world.rooms.get(&chat).map(|room| room.posts.values());
        posts.into_iter().flatten().cloned().collect()
    }

    /// Returns the messages of the bot in a chat.
    pub fn answers(&self, chat: i64) -> Vec<Posted> {
        let mut messages = self.messages(chat);
        messages.retain(|message| message.by_bot);
        messages
    }

    /// Waits until `found` returns a value for the bot's messages in a chat. The caller limits the
    /// time.
    pub async fn wait_for_answers<T>(
        &self,
        chat: i64,
        mut found: impl FnMut(&[Posted]) -> Option<T>,
    ) -> T {
        self.wait_for(|people| found(&people.answers(chat))).await
    }

    /// Waits until `found` returns a value; it is called after every change. The caller limits the
    /// time.
    pub async fn wait_for<T>(&self, mut found: impl FnMut(&Self) -> Option<T>) -> T {
        loop {
            let changed = self.shared().changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(value) = found(self) {
                return value;
            }
            changed.await;
        }
    }

    /// Returns the draft that a private chat shows.
    pub fn draft(&self, chat: i64) -> Option<Draft> {
        let now = self.shared().now();
        let world = self.shared().world();
        world.rooms.get(&chat)?.shown_draft(now).cloned()
    }

    /// Returns the answer to a press.
    pub fn press_answer(&self, press: &str) -> Option<PressAnswer> {
        self.shared().world().presses.get(press).cloned()
    }

    /// Returns the registered commands.
    pub fn commands(&self) -> Value {
        self.shared().world().commands.clone()
    }

    /// Returns the number of updates that are not confirmed.
    pub fn unconfirmed(&self) -> usize {
        self.shared().world().queue.len()
    }

    /// Returns the number of calls for a chat before the time that a refusal had named.
    pub fn early_calls(&self) -> usize {
        self.shared().world().limits.early
    }
}

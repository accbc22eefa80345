//! Messages that arrive while an answer of their conversation is in progress.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use deerflow_domain::channels::{InboxEnd, InboxMessage, InboxState, NewOutgoing, Urgency};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::admission::admission_of;
use super::context::{Turn, TurnError};
use super::notice::notice;
use super::stored::stored_event;
use crate::config::Busy;
use crate::outbox;
use crate::people::Admission;
use crate::platform::Event;
use crate::words;

/// Later messages that are examined at once.
const LATER: u64 = 50;
/// Delay of the notice that a message waits. An answer that ends earlier needs none.
const NOTICE_DELAY: Duration = Duration::from_secs(2);

/// Notice that a message waits; one per answer is enough.
#[derive(Debug)]
enum Notice {
    /// No message waits.
    None,
    /// It is sent at this time.
    Due(Instant, Vec<NewOutgoing>),
    /// It was sent.
    Sent,
}

/// Applies the rule for messages to a busy conversation.
#[derive(Debug)]
pub(super) struct LaterMessages<'a> {
    turn: &'a Turn<'a>,
    /// Cancelled to interrupt the answer in progress.
    interrupt: CancellationToken,
    examined: HashSet<Uuid>,
    /// Permission to use the bot, by the id of the sender.
    admitted: HashMap<String, bool>,
    notice: Notice,
}

impl<'a> LaterMessages<'a> {
    pub(super) fn new(turn: &'a Turn<'a>, interrupt: CancellationToken) -> Self {
        Self {
            turn,
            interrupt,
            examined: turn.ids().into_iter().collect(),
            admitted: HashMap::new(),
            notice: Notice::None,
        }
    }

    /// Applies the rule to the messages that arrived since the last call.
    pub(super) async fn examine(&mut self) -> Result<(), TurnError> {
        if self.is_decided() {
            return Ok(());
        }
        let bot = self.turn.bot;
        let (account, conversation) = (&bot.claim.account, self.turn.conversation());
        let inbox = &bot.hub.stores.inbox;
        let waiting = inbox
            .waiting(account, conversation, Urgency::InOrder, LATER)
            .await?;
        for row in waiting {
            if self.is_decided() {
                break;
            }
            if self.examined.insert(row.id)
                && let Ok(event) = stored_event(&row)
                && self.is_admitted(&event).await?
            {
                self.apply(&row, &event).await?;
            }
        }
        Ok(())
    }

    /// Reports whether further messages have no effect.
    fn is_decided(&self) -> bool {
        match self.turn.bot.rules.busy {
            Busy::Interrupt => self.interrupt.is_cancelled(),
            Busy::Queue => !matches!(self.notice, Notice::None),
            Busy::Refuse => false,
        }
    }

    /// Reports whether the sender may use the bot. A message of a stranger must have no effect; its
    /// own turn decides about a reply.
    async fn is_admitted(&mut self, event: &Event) -> Result<bool, TurnError> {
        if let Some(known) = self.admitted.get(&event.sender.id) {
            return Ok(*known);
        }
        let admission = admission_of(self.turn.bot, event).await?;
        let is_admitted = matches!(admission, Admission::Admitted { .. });
        self.admitted.insert(event.sender.id.clone(), is_admitted);
        Ok(is_admitted)
    }

    async fn apply(&mut self, row: &InboxMessage, event: &Event) -> Result<(), TurnError> {
        let bot = self.turn.bot;
        let reply = |text| notice(bot, row.id, event, &row.conversation, text);
        match bot.rules.busy {
            Busy::Interrupt => self.interrupt.cancel(),
            Busy::Queue => {
                self.notice = Notice::Due(Instant::now() + NOTICE_DELAY, reply(words::QUEUED));
            }
            Busy::Refuse => {
                let end = InboxEnd {
                    state: InboxState::Refused,
                    note: Some("the conversation is busy".to_owned()),
                };
                bot.end(&[row.id], end, reply(words::BUSY)).await?;
                outbox::wake(bot, row.key.chat.clone());
            }
        }
        Ok(())
    }

    /// Waits until the notice is due; never returns if there is none.
    pub(super) async fn notice_due(&self) {
        match &self.notice {
            Notice::Due(at, _) => sleep_until(*at).await,
            Notice::None | Notice::Sent => std::future::pending().await,
        }
    }

    /// Sends the notice.
    pub(super) async fn send_notice(&mut self) -> Result<(), TurnError> {
        let Notice::Due(_, rows) = std::mem::replace(&mut self.notice, Notice::Sent) else {
            return Ok(());
        };
        let bot = self.turn.bot;
        let chats: Vec<String> = rows.iter().map(|row| row.chat.clone()).collect();
        let (now, outbox) = (bot.hub.clock.now(), &bot.hub.stores.outbox);
        outbox.enqueue(&bot.claim, rows, now).await?;
        chats.into_iter().for_each(|chat| outbox::wake(bot, chat));
        Ok(())
    }
}

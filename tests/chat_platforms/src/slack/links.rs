//! Registry of Socket Mode connections: tickets, commands and waiting envelopes.

use std::collections::{BTreeMap, HashMap, HashSet};

use parking_lot::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

/// Command to a connection.
#[derive(Debug, Clone)]
pub(super) enum Command {
    /// Sends a text.
    Text(String),
    /// Sends bytes.
    Binary(Vec<u8>),
    /// Sends a close frame and ends.
    Close(u16),
    /// Ends without a close frame.
    Abort,
    /// Stays open without reading or writing.
    Silence,
}

/// Envelope that waits for its acknowledgement.
#[derive(Debug)]
struct Waiting {
    link: u64,
    acked: oneshot::Sender<()>,
}

#[derive(Debug, Default)]
struct State {
    tickets: HashSet<String>,
    open: BTreeMap<u64, UnboundedSender<Command>>,
    last: u64,
    turn: u64,
    waiting: HashMap<String, Waiting>,
}

/// Connections.
#[derive(Debug, Default)]
pub(super) struct Links(Mutex<State>);

impl Links {
    /// Creates a ticket, unless too many connections are open.
    pub(super) fn ticket(&self, max: usize) -> Option<String> {
        let mut state = self.0.lock();
        if state.open.len() >= max {
            return None;
        }
        let ticket = format!("t{}", hex::encode(rand::random::<[u8; 8]>()));
        state.tickets.insert(ticket.clone());
        Some(ticket)
    }

    /// Consumes a ticket.
    pub(super) fn redeem(&self, ticket: &str) -> bool {
        self.0.lock().tickets.remove(ticket)
    }

    /// Returns the number of open connections.
    pub(super) fn count(&self) -> usize {
        self.0.lock().open.len()
    }

    /// Sends a command to every connection.
    pub(super) fn all(&self, command: &Command) {
        for link in self.0.lock().open.values() {
            // A connection that just ended gets nothing.
            let _ = link.send(command.clone());
        }
    }

    /// Sends an envelope to the next connection in turn. The receiver resolves when it is
    /// acknowledged there.
    pub(super) fn send(&self, id: &str, text: String) -> Option<oneshot::Receiver<()>> {
        let mut state = self.0.lock();
        let turn = state.turn as usize % state.open.len().max(1);
        state.turn += 1;
        let (link, sender) = state.open.iter().nth(turn)?;
        let (link, sender) = (*link, sender.clone());
        sender.send(Command::Text(text)).ok()?;
        let (acked, receiver) = oneshot::channel();
        state.waiting.insert(id.to_owned(), Waiting { link, acked });
        Some(receiver)
    }

    /// Forgets an envelope; a later acknowledgement has no effect.
    pub(super) fn forget(&self, id: &str) {
        self.0.lock().waiting.remove(id);
    }

    /// Adds a connection. Returns its number, the number of connections, and its commands.
    pub(super) fn enter(&self) -> (u64, usize, UnboundedReceiver<Command>) {
        let (sender, receiver) = unbounded_channel();
        let mut state = self.0.lock();
        state.last += 1;
        let id = state.last;
        state.open.insert(id, sender);
        (id, state.open.len(), receiver)
    }

    /// Removes a connection; its envelopes count as not acknowledged.
    pub(super) fn leave(&self, link: u64) {
        let mut state = self.0.lock();
        state.open.remove(&link);
        state.waiting.retain(|_, waiting| waiting.link != link);
    }

    /// Acknowledges an envelope; `false` if none of this connection waits under the id.
    pub(super) fn ack(&self, link: u64, id: &str) -> bool {
        let mut state = self.0.lock();
        if state
            .waiting
            .get(id)
            .is_none_or(|waiting| waiting.link != link)
        {
            return false;
        }
        state
            .waiting
            .remove(id)
            .is_some_and(|waiting| waiting.acked.send(()).is_ok())
    }
}

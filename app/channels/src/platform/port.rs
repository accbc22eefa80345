//! The port that an adapter implements.

use async_trait::async_trait;
use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::{
    Abilities, Delivery, Event, FileBody, IncomingFile, LiveReply, OutgoingMessage, PlatformError,
    Receipt, Sent, SinkError, Target,
};

/// The bot as its platform knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Id that stays the same when the token changes.
    pub account: String,
    /// Name for display.
    pub name: String,
    /// Problems that an operator can fix, each with its remedy: missing scopes, intents, privacy
    /// mode.
    pub warnings: Vec<String>,
}

/// Command that a platform may show in its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandHelp {
    /// Name without slash.
    pub name: &'static str,
    /// Description.
    pub description: &'static str,
}

/// Receiver of events.
#[async_trait]
pub trait EventSink: Send + Sync {
    /// Reports that the connection is established and authorized.
    fn connected(&self);

    /// Stores events, and the cursor behind them, in one transaction. The platform's
    /// acknowledgement follows only a success. Duplicates are dropped silently.
    async fn accept(&self, events: Vec<Event>, cursor: Option<String>) -> Result<(), SinkError>;
}

/// One bot on one platform. Methods are called concurrently.
#[async_trait]
pub trait Platform: Send + Sync + std::fmt::Debug {
    /// Returns the abilities and limits.
    fn abilities(&self) -> &Abilities;

    /// Asks the platform who the bot is. Needs no connection.
    async fn identify(&self) -> Result<Identity, PlatformError>;

    /// Registers the command list, if the platform has one. A failure is logged and ignored.
    async fn register_commands(&self, _commands: &[CommandHelp]) -> Result<(), PlatformError> {
        Ok(())
    }

    /// Connects and delivers events until `stop`, or until the connection ends. After `stop` it
    /// acknowledges what is stored, sends the close frame and returns `Ok`. The caller reconnects
    /// after every error but [`PlatformError::Rejected`] and [`SinkError::Fenced`].
    ///
    /// Events that cannot be decoded cost one log line, are acknowledged, and do not end the
    /// connection.
    async fn listen(
        &self,
        sink: &dyn EventSink,
        cursor: Option<String>,
        stop: CancellationToken,
    ) -> Result<(), PlatformError>;

    /// Sends a message, or completes the live message that it names. If that message has expired,
    /// the text is sent as a new message. `file` is present for file contents.
    async fn send(
        &self,
        message: &OutgoingMessage,
        file: Option<FileBody>,
        delivery: &mut Delivery,
    ) -> Result<Sent, PlatformError>;

    /// Reports whether a repeated first [`update_live`](Self::update_live) with the same
    /// `reply.key` finds the message of the first call, by the key or, if `reply.may_exist`, by a
    /// search. Then a message that was begun and not recorded is found and completed.
    fn finds_live(&self) -> bool {
        false
    }

    /// Reports whether [`prepare_live`](Self::prepare_live) calls the platform: the call counts
    /// against the rate of the account.
    fn prepares_live(&self) -> bool {
        false
    }

    /// Creates what the live message needs before people see it, and changes `reply.state`, which is
    /// stored before the first [`update_live`](Self::update_live).
    async fn prepare_live(&self, _reply: &mut LiveReply) -> Result<(), PlatformError> {
        Ok(())
    }

    /// Shows the whole text so far, as Markdown, in the live message, which is created if
    /// `reply.state` is null. The adapter cuts the text to its limit. If its best way is missing or
    /// has expired it continues with the next one and changes `reply.state`.
    async fn update_live(&self, reply: &mut LiveReply, markdown: &str)
    -> Result<(), PlatformError>;

    /// Shows a sign. A failure is logged and ignored.
    async fn show(&self, _target: &Target, _receipt: Receipt) -> Result<(), PlatformError> {
        Ok(())
    }

    /// Confirms a press to the person, with an optional short text. Called after the press is
    /// stored. A failure is logged and ignored.
    async fn confirm_press(&self, _target: &Target, _text: &str) -> Result<(), PlatformError> {
        Ok(())
    }

    /// Downloads a received file of at most `max` bytes.
    ///
    /// # Errors
    /// [`PlatformError::Refused`] with words for the sender if the file is too large or gone.
    async fn download(&self, file: &IncomingFile, max: u64) -> Result<Bytes, PlatformError>;
}

//! Port of chat platforms. An adapter is one folder that implements [`Platform`] and
//! [`PlatformFactory`].

mod abilities;
mod error;
mod event;
mod factory;
mod message;
mod nesting;
mod port;
mod text;

pub use abilities::{
    Abilities, FileLimits, GroupConversations, LengthUnit, LivePacing, Rates, TextLimit,
};
pub use error::{PlatformError, SinkError};
pub use event::{
    Chat, ChatKind, ChatMessage, Event, EventBody, IncomingFile, MAX_TEXT_BYTES, Press, Sender,
};
pub use factory::{CredentialField, PlatformContext, PlatformFactory, Settings, SettingsError};
pub(crate) use message::OUTPUTS;
pub use message::{
    Button, Content, Delivery, FileBody, LiveReply, OutgoingMessage, Receipt, Sent, Target,
};
pub(crate) use nesting::{MAX_NESTING, nesting};
pub use port::{CommandHelp, EventSink, Identity, Platform};
pub use text::{Dialect, Part};
pub(crate) use text::{cut_text, floor_boundary};

//! Adapter kind `pi-mono`: turns of agents behind HTTP, by a DeepSeek-compatible chat completion or
//! by sessions and turns of a pi-mono server.
//!
//! [`PiMonoSettings`] resolves the configuration of an agent, [`findings`] states its problems, and
//! [`PiMonoFactory`] builds the adapter with the [`TurnTransport`] that the settings select.

mod agent;
mod call;
mod completion;
mod deepseek;
mod factory;
mod failure;
mod findings;
mod http;
mod key_filter;
mod origin;
mod redaction;
mod secrets;
mod settings;
mod stream;
mod transport;
mod turn_stream;
mod turn_wire;
mod usage;

pub use call::TurnLimits;
pub use factory::{ClientUnavailable, PiMonoFactory, PiMonoPorts};
pub use findings::findings;
pub use origin::Origin;
pub use secrets::{NoSecrets, SecretResolver};
pub use settings::{
    ApiKey, PiMonoOptions, PiMonoSettings, Setting, SettingsInput, Source, TransportKind,
    UnknownTransport,
};
pub use transport::{SessionRequest, TurnRequest, TurnTransport};

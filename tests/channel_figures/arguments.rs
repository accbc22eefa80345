//! Command-line arguments.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use crate::rig::PlatformName;

/// Measures chat channels and prints the figures on standard output.
#[derive(Debug, Parser)]
#[command(name = "channel-figures", version)]
pub(crate) struct Arguments {
    /// Measure only these cases.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Case>,
    /// Use only these platforms, in cases that use several.
    #[arg(long, value_enum, value_delimiter = ',')]
    platforms: Vec<PlatformName>,
    /// The `deerflow` binary; without it that of this build.
    #[arg(long)]
    pub(crate) gateway: Option<PathBuf>,
    /// Seed of random choices.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Case `complete`: rendered answers.
    #[arg(long, default_value_t = 10_000)]
    pub(crate) answers: u64,
    /// Case `complete`: answers that pass through a gateway.
    #[arg(long, default_value_t = 240)]
    pub(crate) delivered: u64,
    /// Case `order` and case `flood`: messages.
    #[arg(long, default_value_t = 10_000)]
    pub(crate) messages: usize,
    /// Case `ack`: seconds per platform.
    #[arg(long, default_value_t = 60)]
    ack_seconds: u64,
    /// Case `limits`: minutes.
    #[arg(long, default_value_t = 5)]
    limit_minutes: u64,
    /// Case `outage`: seconds.
    #[arg(long, default_value_t = 300)]
    outage_seconds: u64,
    /// Case `secrecy`: sent bodies.
    #[arg(long, default_value_t = 10_000)]
    pub(crate) bodies: usize,
    /// Case `cost`: seconds.
    #[arg(long, default_value_t = 120)]
    idle_seconds: u64,
}

/// Case of the suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Case {
    /// Texts of answers arrive completely.
    Complete,
    /// Answers of a conversation have the order of its messages.
    Order,
    /// Ten seconds of many messages to one chat.
    Flood,
    /// Time until a received message is acknowledged.
    Ack,
    /// Rate limits of the platforms.
    Limits,
    /// Unreachable platforms, silent connections, expired streams.
    Outage,
    /// Nothing secret is sent or logged.
    Secrecy,
    /// Memory and processor time of idle channels.
    Cost,
}

impl Arguments {
    /// Returns the selected cases.
    pub(crate) fn cases(&self) -> Vec<Case> {
        if self.only.is_empty() {
            Case::value_variants().to_vec()
        } else {
            self.only.clone()
        }
    }

    /// Returns the selected platforms.
    pub(crate) fn platforms(&self) -> Vec<PlatformName> {
        if self.platforms.is_empty() {
            PlatformName::value_variants().to_vec()
        } else {
            self.platforms.clone()
        }
    }

    pub(crate) fn ack_time(&self) -> Duration {
        Duration::from_secs(self.ack_seconds)
    }

    pub(crate) fn limit_time(&self) -> Duration {
        Duration::from_secs(60 * self.limit_minutes)
    }

    pub(crate) fn outage_time(&self) -> Duration {
        Duration::from_secs(self.outage_seconds)
    }

    pub(crate) fn idle_time(&self) -> Duration {
        Duration::from_secs(self.idle_seconds)
    }
}

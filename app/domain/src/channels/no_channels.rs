//! Channel control of a process without channels.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::{ChannelRuntime, ChannelRuntimeError, ChannelStatus};

/// Channel control of a process without channels: it lists none and refuses all operations.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoChannels;

fn unknown<T>(provider: &str) -> Result<T, ChannelRuntimeError> {
    Err(ChannelRuntimeError::Unknown(provider.to_owned()))
}

#[async_trait]
impl ChannelRuntime for NoChannels {
    fn is_running(&self) -> bool {
        false
    }

    fn connections_enabled(&self) -> bool {
        false
    }

    async fn statuses(&self) -> Vec<ChannelStatus> {
        Vec::new()
    }

    async fn credentials(
        &self,
        provider: &str,
    ) -> Result<BTreeMap<String, String>, ChannelRuntimeError> {
        unknown(provider)
    }

    async fn configure(
        &self,
        provider: &str,
        _values: BTreeMap<String, String>,
    ) -> Result<(), ChannelRuntimeError> {
        unknown(provider)
    }

    async fn forget_credentials(&self, provider: &str) -> Result<(), ChannelRuntimeError> {
        unknown(provider)
    }

    async fn restart(&self, provider: &str) -> Result<(), ChannelRuntimeError> {
        unknown(provider)
    }
}

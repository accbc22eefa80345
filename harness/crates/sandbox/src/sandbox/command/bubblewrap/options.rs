//! Options of new sandboxes.

use std::path::PathBuf;
use std::sync::Arc;

use super::inner::InnerProgram;
use crate::sandbox::command::{CommandLimits, Mount};
use crate::sandbox::egress::EgressProvider;

/// Options of new sandboxes.
#[derive(Debug, Clone)]
pub struct BubblewrapOptions {
    /// Folder owned by this process, for the few files that replace files of the host in every
    /// sandbox.
    pub support: PathBuf,
    /// Resource limits of a command.
    pub limits: CommandLimits,
    /// Network access of commands.
    pub network: Network,
    /// First program of a sandbox. Without it there is no write lock and no proxy.
    pub inner: Option<InnerProgram>,
    /// Additional mounts.
    pub mounts: Vec<Mount>,
    /// Additional environment variables.
    pub environment: Vec<(String, String)>,
    /// Folders and files that are hidden even if they lie beneath a visible system folder.
    pub hidden: Vec<PathBuf>,
}

impl BubblewrapOptions {
    /// Returns options with default limits, no network and no additional mounts; `support` is the
    /// folder for its files.
    pub fn new(support: impl Into<PathBuf>) -> Self {
        Self {
            support: support.into(),
            limits: CommandLimits::default(),
            network: Network::None,
            inner: None,
            mounts: Vec::new(),
            environment: Vec::new(),
            hidden: Vec::new(),
        }
    }
}

/// Network access of the commands of a sandbox.
#[derive(Debug, Clone, Default)]
pub enum Network {
    /// Only their own loopback.
    #[default]
    None,
    /// Hosts that a proxy of this process allows.
    Proxied(Arc<dyn EgressProvider>),
    /// All networks that this machine can reach, including the machine itself.
    Host,
}

impl Network {
    pub(super) fn is_shared(&self) -> bool {
        matches!(self, Self::Host)
    }

    pub(super) fn egress_provider(&self) -> Option<&dyn EgressProvider> {
        if let Self::Proxied(proxy) = self {
            Some(&**proxy)
        } else {
            None
        }
    }
}

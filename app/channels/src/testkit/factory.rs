//! Construction of the platform in memory.

use std::sync::Arc;

use super::memory::MemoryPlatform;
use crate::platform::{
    CredentialField, Platform, PlatformContext, PlatformFactory, Settings, SettingsError,
};

/// Factory of one platform in memory, named `memory`.
#[derive(Debug, Clone, Default)]
pub struct MemoryPlatformFactory(pub MemoryPlatform);

impl PlatformFactory for MemoryPlatformFactory {
    fn provider(&self) -> &'static str {
        "memory"
    }

    fn display_name(&self) -> &'static str {
        "Memory"
    }

    fn fields(&self) -> &'static [CredentialField] {
        &[CredentialField {
            name: "token",
            label: "Token",
            secret: true,
        }]
    }

    fn build(
        &self,
        settings: &Settings,
        _context: &PlatformContext,
    ) -> Result<Arc<dyn Platform>, SettingsError> {
        settings.secret("memory", "token")?;
        Ok(Arc::new(self.0.clone()))
    }
}

//! Serving the API.

use crate::config::{ConfigHandle, Settings};

/// Runs the server until it is told to stop.
pub async fn run(settings: Settings, config: ConfigHandle) -> anyhow::Result<()> {
    let exposure = settings.exposure()?;
    tracing::info!("{exposure}");
    anyhow::bail!(
        "serving {} models on {}:{} is wired by the composition root",
        config.current().models.len(),
        settings.host,
        settings.port
    )
}

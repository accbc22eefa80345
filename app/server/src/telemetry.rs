//! The log: text for people or JSON for machines, always with the ids of the run and the thread a line belongs to.

use std::io::IsTerminal;

use harness::config::{AppConfig, LogFormat};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

use crate::config::Environment;

/// Starts logging to standard error. `RUST_LOG` wins over `log_level`. A second call changes nothing.
pub fn start(config: &AppConfig, environment: &Environment) {
    // What the migrations do step by step is of no use to an operator.
    let quiet = format!("{},sea_orm_migration=warn", config.log_level.as_filter());
    let filter = environment.filled("RUST_LOG").unwrap_or(&quiet);
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_span_events(FmtSpan::NONE);
    let enhance = &config.logging.enhance;
    let started = if enhance.enabled && enhance.format == LogFormat::Json {
        subscriber.json().flatten_event(true).with_current_span(true).with_span_list(true).try_init()
    } else {
        subscriber.try_init()
    };
    if let Err(error) = started {
        tracing::debug!(%error, "logging has been started before");
    }
}

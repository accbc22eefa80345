//! Logs as text or JSON, and traces for an OpenTelemetry collector.

mod traces;

use std::io::IsTerminal;

use harness::config::{AppConfig, LogFormat};
use harness::config_file::Environment;
use harness::runtime::tasks::Tasks;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Subscriber;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

/// Started telemetry.
#[derive(Debug)]
#[must_use = "remaining traces are exported by `stop`"]
pub struct Telemetry(Option<SdkTracerProvider>);

/// Starts logging to standard error, with the ids of run and thread on each line, and exports
/// traces if the environment names a collector (`OTEL_EXPORTER_OTLP_ENDPOINT`). `RUST_LOG` takes
/// precedence over `log_level`. A second call has no effect.
///
/// # Errors
/// The configuration of the collector is invalid.
pub fn start(
    config: &AppConfig,
    environment: &Environment,
    tasks: &Tasks,
) -> anyhow::Result<Telemetry> {
    let provider = traces::provider(environment, tasks)?;
    let traces = provider.as_ref().map(traces::layer);
    // The store reports the steps of migrations, and output of MCP servers and other agents must not
    // be logged.
    let quiet = format!(
        "{},sea_orm_migration=warn,rmcp=error,agent_client_protocol=error",
        config.log_level.as_filter()
    );
    let filter = EnvFilter::new(environment.filled("RUST_LOG").unwrap_or(&quiet));
    let started = tracing_subscriber::registry()
        .with(log(config).with_filter(filter))
        .with(traces)
        .try_init();
    if let Err(error) = started {
        tracing::debug!(%error, "logging was already started");
    }
    Ok(Telemetry(provider))
}

fn log<S: Subscriber + for<'a> LookupSpan<'a>>(
    config: &AppConfig,
) -> Box<dyn Layer<S> + Send + Sync> {
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let enhance = &config.logging.enhance;
    if enhance.enabled && enhance.format == LogFormat::Json {
        lines
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(true)
            .boxed()
    } else {
        lines.boxed()
    }
}

impl Telemetry {
    /// Exports the remaining traces, with a timeout.
    pub async fn stop(self) {
        let Some(provider) = self.0 else { return };
        let stopped = tokio::task::spawn_blocking(move || {
            provider.shutdown_with_timeout(traces::FLUSH_TIMEOUT)
        })
        .await;
        if let Ok(Err(error)) = stopped {
            tracing::warn!(%error, "cannot export the remaining traces");
        }
    }
}

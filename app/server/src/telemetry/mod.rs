//! What the process tells of itself: the log, as text for people or JSON for machines, and traces when somebody collects them.

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

/// What was started. It lives as long as the process has something to tell.
#[derive(Debug)]
#[must_use = "the last traces are sent when this is stopped"]
pub struct Telemetry(Option<SdkTracerProvider>);

/// Starts logging to standard error, every line with the ids of its run and thread, and sends traces to the collector that the
/// environment names (`OTEL_EXPORTER_OTLP_ENDPOINT`). `RUST_LOG` wins over `log_level`. A second call changes nothing.
///
/// # Errors
/// When the environment names a collector in a way that cannot be meant.
pub fn start(
    config: &AppConfig,
    environment: &Environment,
    tasks: &Tasks,
) -> anyhow::Result<Telemetry> {
    let provider = traces::provider(environment, tasks)?;
    let traces = provider.as_ref().map(traces::layer);
    // What the migrations do step by step is of no use to an operator, and what MCP servers and other agents say is not for the log.
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
        tracing::debug!(%error, "logging has been started before");
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
    /// Sends what was not sent yet, for a few seconds at most.
    pub async fn stop(self) {
        let Some(provider) = self.0 else { return };
        let stopped =
            tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(traces::LAST_WORDS))
                .await;
        if let Ok(Err(error)) = stopped {
            tracing::warn!(%error, "the last traces were not sent");
        }
    }
}

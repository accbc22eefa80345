//! Exports traces by OTLP over HTTP as JSON, configured by the standard OpenTelemetry variables.
//! Without a collector there is no overhead.

use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use axum::body::Bytes;
use axum::http::{Request, Response};
use harness::config_file::Environment;
use harness::runtime::tasks::{TaskKind, Tasks};
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::registry::LookupSpan;

/// Timeout of the last export at shutdown.
pub(super) const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// Timeout of one export.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);
const SERVICE: &str = "deerflow";

/// Creates the tracer provider if a collector is configured. The exporter reads the other variables
/// itself (`OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_TRACES_SAMPLER`, `OTEL_BSP_SCHEDULE_DELAY`, ..).
pub(super) fn provider(
    environment: &Environment,
    tasks: &Tasks,
) -> anyhow::Result<Option<SdkTracerProvider>> {
    let variables = [
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
    ];
    let Some(variable) = variables
        .into_iter()
        .find(|variable| environment.filled(variable).is_some())
    else {
        return Ok(None);
    };
    let client = reqwest::Client::builder()
        .timeout(EXPORT_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .build()?;
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(RuntimeHttpClient {
            client,
            runtime: Handle::current(),
            tasks: tasks.clone(),
        })
        .with_protocol(Protocol::HttpJson)
        .build()
        .with_context(|| format!("{variable} does not name a usable trace collector"))?;
    let mut resource = Resource::builder();
    if environment.filled("OTEL_SERVICE_NAME").is_none() {
        resource = resource.with_service_name(SERVICE);
    }
    Ok(Some(
        SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource.build())
            .build(),
    ))
}

/// Returns the layer that exports spans of this project. Spans of the exporting HTTP client would
/// cause endless exports.
pub(super) fn layer<S: Subscriber + for<'a> LookupSpan<'a>>(
    provider: &SdkTracerProvider,
) -> impl Layer<S> + use<S> {
    let ours = Targets::new().with_target("deerflow", LevelFilter::INFO);
    tracing_opentelemetry::layer()
        .with_tracer(provider.tracer(SERVICE))
        .with_location(false)
        .with_threads(false)
        .with_filter(ours)
}

/// Runs requests of the exporter, whose thread is outside of the runtime, on the runtime.
#[derive(Debug)]
struct RuntimeHttpClient {
    client: reqwest::Client,
    runtime: Handle,
    tasks: Tasks,
}

#[async_trait]
impl HttpClient for RuntimeHttpClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let request = reqwest::Request::try_from(request)?;
        let answer = send(self.client.clone(), request);
        let sending = {
            let _inside = self.runtime.enter();
            self.tasks.spawn(TaskKind::Finish, "traces", answer)
        };
        sending.await??
    }
}

async fn send(
    client: reqwest::Client,
    request: reqwest::Request,
) -> Result<Response<Bytes>, HttpError> {
    let answer = client.execute(request).await?;
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = answer.status();
    *response.headers_mut() = answer.headers().clone();
    *response.body_mut() = answer.bytes().await?;
    Ok(response)
}

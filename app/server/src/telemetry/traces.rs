//! Traces by OTLP over HTTP, as JSON, to the collector that the standard variables of OpenTelemetry name. Without one nothing
//! is gathered and nothing is paid.

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

/// How long a stopping process tries to send what it still has.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(3);

/// How long a batch may take on its way.
const PATIENCE: Duration = Duration::from_secs(10);
const SERVICE: &str = "deerflow";

/// Where spans are gathered and sent in batches, if somebody collects them. The exporter reads the further variables itself
/// (`OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_TRACES_SAMPLER`, `OTEL_BSP_SCHEDULE_DELAY`, ..).
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
        .timeout(PATIENCE)
        .redirect(reqwest::redirect::Policy::none())
        .build()?;
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(OnRuntime {
            client,
            runtime: Handle::current(),
            tasks: tasks.clone(),
        })
        .with_protocol(Protocol::HttpJson)
        .build()
        .with_context(|| format!("{variable} does not lead to a collector of traces"))?;
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

/// The layer that hands our own spans to `provider`. Those of the HTTP client that sends them would never end.
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

/// Sends from the exporter's thread, which is none of the runtime's.
#[derive(Debug)]
struct OnRuntime {
    client: reqwest::Client,
    runtime: Handle,
    tasks: Tasks,
}

#[async_trait]
impl HttpClient for OnRuntime {
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

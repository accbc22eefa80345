//! Creates the configured item store.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use chrono::TimeDelta;
use deerflow_domain::items::{EmbeddingIndex, FieldPath, ItemService, ItemStore, TtlPolicy};
use harness::clock::Clock;
use harness::config::{EmbedConfig, LlmCallConfig, StoreConfig, StoreIndexConfig};
use harness::config_file::Environment;
use harness::models::RetryPolicy;
use harness::models::http::SharedHttp;
use harness::models::openai::{EmbeddingEntry, OPENAI_BASE_URL, OpenAiEmbedder};

pub(super) fn open(
    config: &StoreConfig,
    calls: &LlmCallConfig,
    environment: &Environment,
    store: Arc<dyn ItemStore>,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<Arc<ItemService>> {
    let minutes = |minutes: f64| (minutes * 60e6) as i64;
    let ttl = TtlPolicy {
        default: config
            .ttl
            .default_ttl
            .map(|life| TimeDelta::microseconds(minutes(life))),
        refresh_on_read: config.ttl.refresh_on_read,
        sweep_every: Duration::from_secs_f64(config.ttl.sweep_interval_minutes * 60.0),
    };
    let index = config
        .index
        .as_ref()
        .map(|index| embedding_index(index, RetryPolicy::from(calls), environment, clock.clone()))
        .transpose();
    Ok(Arc::new(ItemService::new(
        store,
        index.context("store.index.embed cannot be used")?,
        ttl,
        clock,
    )))
}

fn embedding_index(
    index: &StoreIndexConfig,
    retry: RetryPolicy,
    environment: &Environment,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<EmbeddingIndex> {
    let default_timeout = Duration::from_secs(30);
    let (name, base_url, api_key, timeout) = match &index.embed {
        EmbedConfig::Name(name) => (name, None, None, default_timeout),
        EmbedConfig::Entry(entry) => (
            &entry.model,
            entry.base_url.clone(),
            entry.api_key.clone(),
            Duration::from_secs_f64(entry.timeout),
        ),
        other => anyhow::bail!("this build does not know {other:?}"),
    };
    let model = match name.split_once(':') {
        Some(("openai", model)) => model,
        Some((provider, _)) if base_url.is_none() => {
            anyhow::bail!(
                "the provider {provider:?} is not supported; `openai:` and a `base_url` are"
            )
        }
        _ => name,
    };
    let is_openai = base_url.is_none();
    let api_key = api_key.or_else(|| {
        environment
            .filled("OPENAI_API_KEY")
            .filter(|_| is_openai)
            .map(|key| key.to_owned().into())
    });
    anyhow::ensure!(
        !is_openai || api_key.is_some(),
        "it needs an `api_key`, or OPENAI_API_KEY in the environment"
    );
    let entry = EmbeddingEntry {
        model: model.to_owned(),
        base_url: base_url.unwrap_or_else(|| OPENAI_BASE_URL.to_owned()),
        api_key,
        dims: index.dims,
        timeout,
        retry,
    };
    let embedder =
        OpenAiEmbedder::new(entry, SharedHttp::new()?, clock).map_err(anyhow::Error::msg)?;
    let fields = index
        .fields
        .iter()
        .map(|field| FieldPath::parse(field))
        .collect();
    Ok(EmbeddingIndex {
        embedder: Arc::new(embedder),
        fields,
    })
}

//! Embedding index of the item store, as configured under `store.index`.

use std::sync::Arc;
use std::time::Duration;

use deerflow_domain::items::{EmbeddingIndex, FieldPath};
use harness::clock::Clock;
use harness::config::{EmbedConfig, StoreIndexConfig};
use harness::config_file::Environment;
use harness::models::RetryPolicy;
use harness::models::http::SharedHttp;
use harness::models::openai::{EmbeddingEntry, OPENAI_BASE_URL, OpenAiEmbedder};

/// Creates the index; fails if it names no supported embedding model.
pub(crate) fn embedding_index(
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

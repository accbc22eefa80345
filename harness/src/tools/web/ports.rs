//! What the three tools ask of a provider.

use std::fmt::Debug;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::tools::ToolError;

/// A search.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Query {
    /// What is sought.
    pub(super) text: String,
    /// How many results are wanted; as many as the provider is set to if nobody says.
    pub(super) most: Option<usize>,
    /// Of pictures: how large, of what kind and of what form they shall be.
    pub(super) size: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) layout: Option<String>,
}

/// A page that was found.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Hit {
    pub(super) title: String,
    pub(super) url: String,
    /// What the page says about it.
    pub(super) text: String,
    /// What only this provider tells.
    pub(super) more: Map<String, Value>,
}

/// A picture that was found.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Picture {
    pub(super) title: String,
    pub(super) image_url: String,
    pub(super) thumbnail_url: String,
    /// What only this provider tells.
    pub(super) more: Map<String, Value>,
}

/// A page that was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Page {
    /// Its title; none if the text has it.
    pub(super) title: Option<String>,
    /// Its text in Markdown.
    pub(super) text: String,
}

/// Finds pages.
#[async_trait]
pub(super) trait PageFinder: Send + Sync + Debug + 'static {
    async fn find(&self, query: &Query) -> Result<Vec<Hit>, ToolError>;
}

/// Finds pictures.
#[async_trait]
pub(super) trait PictureFinder: Send + Sync + Debug + 'static {
    async fn find_pictures(&self, query: &Query) -> Result<Vec<Picture>, ToolError>;
}

/// Reads pages.
#[async_trait]
pub(super) trait PageReader: Send + Sync + Debug + 'static {
    async fn read(&self, url: &str) -> Result<Page, ToolError>;
}

/// The text under `key`; nothing for anything else.
pub(super) fn text_of(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().trim().to_owned()
}

/// The objects of a list; nothing for anything else.
pub(super) fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
        .iter()
        .filter(|item| item.is_object())
}

impl Hit {
    /// Reads an item whose parts have these names; `None` without an address.
    pub(super) fn read(item: &Value, url: &str, text: &str) -> Option<Self> {
        let hit = Self {
            title: text_of(item, "title"),
            url: text_of(item, url),
            text: text_of(item, text),
            more: Map::new(),
        };
        (!hit.url.is_empty()).then_some(hit)
    }
}

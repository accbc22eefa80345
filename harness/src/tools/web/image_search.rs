//! `image_search`: searches the web for images.

use std::marker::PhantomData;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::ports::{ImageFinder, ImageHit, Query};
use super::web_search::{Form, no_results, pretty, usable};
use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};

/// Name of the tool.
pub const IMAGE_SEARCH: &str = "image_search";

/// Explanation of the addresses in a result.
const HINT: &str = "image_url is the picture itself: download it to use it as a reference or to show it. thumbnail_url is a small copy.";

/// Searches for images.
#[derive(Debug)]
pub(super) struct ImageSearch<A> {
    finder: Arc<dyn ImageFinder>,
    form: Form,
    arguments: PhantomData<fn(A)>,
}

impl<A> ImageSearch<A> {
    pub(super) fn new(finder: Arc<dyn ImageFinder>, form: Form) -> Self {
        Self {
            finder,
            form,
            arguments: PhantomData,
        }
    }
}

/// Arguments of `image_search`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ImageArgs {
    /// What the pictures shall show. Words for subject, style and time make results better.
    query: String,
    /// How many pictures you want.
    #[serde(default)]
    #[schemars(with = "usize", extend("default" = 5))]
    max_results: Option<usize>,
}

/// Arguments of `image_search` where the provider can tell pictures apart.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct FilteredImageArgs {
    /// What the pictures shall show. Words for subject, style and time make results better.
    query: String,
    /// How many pictures you want.
    #[serde(default)]
    #[schemars(with = "usize", extend("default" = 5))]
    max_results: Option<usize>,
    /// How large: Small, Medium, Large or Wallpaper.
    #[serde(default)]
    size: Option<String>,
    /// Of what kind: photo, clipart, gif, transparent or line.
    #[serde(default)]
    type_image: Option<String>,
    /// Of what form: Square, Tall or Wide.
    #[serde(default)]
    layout: Option<String>,
}

impl From<ImageArgs> for Query {
    fn from(args: ImageArgs) -> Self {
        Self {
            text: args.query,
            max_results: args.max_results,
            ..Self::default()
        }
    }
}

impl From<FilteredImageArgs> for Query {
    fn from(args: FilteredImageArgs) -> Self {
        let FilteredImageArgs {
            query,
            max_results,
            size,
            type_image,
            layout,
        } = args;
        Self {
            text: query,
            max_results,
            size,
            kind: type_image,
            layout,
        }
    }
}

impl<A: Into<Query> + DeserializeOwned + JsonSchema + Send + 'static> Tool for ImageSearch<A> {
    type Args = A;

    fn name(&self) -> &str {
        IMAGE_SEARCH
    }

    fn description(&self) -> &str {
        "Search the web for pictures. Gives titles and addresses, not the pictures themselves. Use it to find references before a \
         picture is made or shown. Not for facts."
    }

    fn effect(&self, _args: &A) -> Effect {
        Effect::Pure
    }

    async fn call(&self, args: A, _ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let query = usable(args.into())?;
        let images = self.finder.find_images(&query).await?;
        Ok(ToolOutput::text(pretty(&rendered(
            &query, images, self.form,
        ))))
    }
}

fn rendered(query: &Query, images: Vec<ImageHit>, form: Form) -> Value {
    let items = images.into_iter().map(|image| {
        let mut item = json!({ "title": image.title, "image_url": image.image_url });
        if let Some(fields) = item.as_object_mut() {
            if !image.thumbnail_url.is_empty() {
                fields.insert("thumbnail_url".to_owned(), image.thumbnail_url.into());
            }
            fields.extend(image.more);
        }
        item
    });
    let items: Vec<Value> = items.collect();
    match form {
        Form::List => Value::Array(items),
        Form::Object if items.is_empty() => no_results(query),
        Form::Object => {
            json!({ "query": query.text, "total_results": items.len(), "results": items, "usage_hint": HINT })
        }
    }
}

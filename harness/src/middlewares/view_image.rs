//! Adds the images that the model requested with `view_image` to its next request.
//!
//! The files are read when the request is sent. Their bytes are part of the request only: no
//! checkpoint and no viewer receives them.

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::hooks::Hooks;
use super::middleware::{Middleware, ModelNext};
use crate::messages::{Content, Message, kwargs};
use crate::models::{ModelError, ModelRequest};
use crate::runtime::agent::RunContext;
use crate::sandbox::{FileHome, ThreadFiles};
use crate::tools::builtins::MAX_IMAGE_BYTES;

/// Maximum number of image bytes in one request: providers reject requests that are much larger.
const MAX_REQUEST_IMAGE_BYTES: u64 = MAX_IMAGE_BYTES;

/// Adds the images of the latest calls of `view_image` to the request.
#[derive(Debug, Clone)]
pub struct ViewImageMiddleware {
    files: FileHome,
}

/// Image as recorded by the tool in its result.
#[derive(Debug, Clone, Deserialize)]
struct ViewedImage {
    path: String,
    mime_type: String,
    size: u64,
}

impl ViewImageMiddleware {
    /// Creates the middleware for the files in this storage.
    pub fn new(files: FileHome) -> Self {
        Self { files }
    }
}

#[async_trait]
impl Middleware for ViewImageMiddleware {
    fn name(&self) -> &str {
        "ViewImageMiddleware"
    }

    fn hooks(&self) -> Hooks {
        Hooks::WRAP_MODEL
    }

    async fn wrap_model_call(
        &self,
        mut request: ModelRequest,
        ctx: &RunContext,
        next: ModelNext<'_>,
    ) -> Result<Message, ModelError> {
        let viewed = just_viewed(&request.messages);
        if !viewed.is_empty() {
            let files = self.files.thread(&ctx.actor.user_id, &ctx.thread_id);
            let mut blocks = vec![text("The pictures you asked to see:".to_owned())];
            let mut remaining = MAX_REQUEST_IMAGE_BYTES;
            for image in &viewed {
                match remaining.checked_sub(image.size) {
                    Some(rest) => {
                        remaining = rest;
                        blocks.extend(image_blocks(image, &self.files, &files).await);
                    }
                    None => blocks.push(text(format!(
                        "{} is too large to be shown with the other images; view it alone.",
                        image.path
                    ))),
                }
            }
            request
                .messages
                .push(Message::human(Content::Blocks(blocks)).with(|body| {
                    body.additional_kwargs
                        .insert(kwargs::HIDE_FROM_UI.to_owned(), Value::Bool(true));
                    body.additional_kwargs
                        .insert(kwargs::VIEW_IMAGE_CONTEXT.to_owned(), Value::Bool(true));
                }));
        }
        next.run(request).await
    }
}

/// Returns the images among the trailing tool results, without duplicates.
fn just_viewed(messages: &[Message]) -> Vec<ViewedImage> {
    let results = messages
        .iter()
        .rev()
        .take_while(|message| message.tool_call_id().is_some());
    let mut viewed: Vec<ViewedImage> = Vec::new();
    for image in results.filter_map(|result| {
        ViewedImage::deserialize(result.additional_kwargs.get(kwargs::VIEWED_IMAGE)?).ok()
    }) {
        if !viewed.iter().any(|known| known.path == image.path) {
            viewed.push(image);
        }
    }
    viewed.reverse();
    viewed
}

async fn image_blocks(image: &ViewedImage, home: &FileHome, files: &ThreadFiles) -> Vec<Value> {
    let ViewedImage {
        path,
        mime_type,
        size,
    } = image;
    let Ok(virtual_path) = home.readable(path) else {
        return vec![text(format!("{path}: no such picture"))];
    };
    match files.read_bytes(&virtual_path, MAX_IMAGE_BYTES).await {
        Ok(bytes) if bytes.len() as u64 == *size => {
            let url = format!("data:{mime_type};base64,{}", STANDARD.encode(&bytes));
            vec![
                text(format!("{path} ({mime_type})")),
                json!({ "type": "image_url", "image_url": { "url": url } }),
            ]
        }
        Ok(_) => vec![text(format!(
            "{path} has changed since you asked for it; call view_image again to see it."
        ))],
        Err(error) => vec![text(format!("{path} cannot be shown: {error}"))],
    }
}

fn text(text: String) -> Value {
    json!({ "type": "text", "text": text })
}

#[cfg(test)]
#[path = "view_image_tests.rs"]
mod tests;

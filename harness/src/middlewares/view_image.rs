//! Shows the model the pictures it has just asked to see.
//!
//! They are read when they are sent and stand in the request alone: no checkpoint and no viewer ever has their bytes.

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::middleware::{Hooks, Middleware};
use super::next::ModelNext;
use crate::messages::{Content, Message, kwargs};
use crate::models::{ModelError, ModelRequest};
use crate::runtime::agent::RunContext;
use crate::sandbox::{FileHome, ThreadFiles};
use crate::tools::builtins::MAX_IMAGE_BYTES;

/// How much one request shows at most, in bytes: providers refuse requests that are much larger.
const MAX_SHOWN_BYTES: u64 = MAX_IMAGE_BYTES;

/// Adds the pictures of the latest calls of `view_image` to the request.
#[derive(Debug, Clone)]
pub struct ViewImageMiddleware {
    files: FileHome,
}

/// What the tool noted of a picture.
#[derive(Debug, Clone, Deserialize)]
struct Viewed {
    path: String,
    mime_type: String,
    size: u64,
}

impl ViewImageMiddleware {
    /// Reads pictures from the threads of this home.
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
            let mut left = MAX_SHOWN_BYTES;
            for image in &viewed {
                match left.checked_sub(image.size) {
                    Some(rest) => {
                        left = rest;
                        blocks.extend(shown(image, &self.files, &files).await);
                    }
                    None => blocks.push(text(format!(
                        "{} is too much to be shown with the others; ask for it alone.",
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

/// The pictures among the results that nothing but other results came after; each once.
fn just_viewed(messages: &[Message]) -> Vec<Viewed> {
    let results = messages
        .iter()
        .rev()
        .take_while(|message| message.tool_call_id().is_some());
    let mut viewed: Vec<Viewed> = Vec::new();
    for image in results.filter_map(|result| {
        Viewed::deserialize(result.additional_kwargs.get(kwargs::VIEWED_IMAGE)?).ok()
    }) {
        if !viewed.iter().any(|known| known.path == image.path) {
            viewed.push(image);
        }
    }
    viewed.reverse();
    viewed
}

async fn shown(image: &Viewed, home: &FileHome, files: &ThreadFiles) -> Vec<Value> {
    let Viewed {
        path,
        mime_type,
        size,
    } = image;
    let Ok(place) = home.readable(path) else {
        return vec![text(format!("{path}: no such picture"))];
    };
    match files.read_bytes(&place, MAX_IMAGE_BYTES).await {
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

//! `view_image`: shows an image to a model with vision.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{failed, files_of, readable};
use crate::messages::kwargs;
use crate::sandbox::FileHome;
use crate::state::StateUpdate;
use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};

/// Name of the tool, by which `ViewImageMiddleware` recognizes it.
pub const VIEW_IMAGE: &str = "view_image";
/// Maximum size of an image, in bytes.
pub const MAX_IMAGE_BYTES: u64 = 20 * 1024 * 1024;

/// Requests to see an image. `ViewImageMiddleware` adds it to the next model call.
#[derive(Debug, Clone)]
pub struct ViewImage {
    /// File storage of all threads.
    pub home: FileHome,
}

/// Arguments of `view_image`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ViewImageArgs {
    /// The picture, as an absolute path under /mnt/user-data/workspace, /mnt/user-data/uploads or /mnt/user-data/outputs.
    pub image_path: String,
}

impl Tool for ViewImage {
    type Args = ViewImageArgs;

    fn name(&self) -> &str {
        VIEW_IMAGE
    }

    fn description(&self) -> &str {
        "Look at a picture: jpg, png, webp or gif, up to 20 MB. You see it with the next message and only then, so say what you need \
         from it; call the tool again to look again. Not for other files."
    }

    fn effect(&self, _args: &ViewImageArgs) -> Effect {
        Effect::Pure
    }

    async fn call(&self, args: ViewImageArgs, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let path = readable(&self.home, &args.image_path)?;
        let ending = path
            .file_name()
            .rsplit_once('.')
            .map(|(_, ending)| ending.to_ascii_lowercase())
            .unwrap_or_default();
        let Some(promised) = type_of_ending(&ending) else {
            return Err(ToolError::for_model(format!(
                "Error: {path} is not an image that can be shown; its name must end in jpg, jpeg, png, webp or gif."
            )));
        };
        let bytes = files_of(&self.home, ctx)
            .read_bytes(&path, MAX_IMAGE_BYTES)
            .await
            .map_err(failed)?;
        let found = type_of_content(&bytes);
        if found != Some(promised) {
            let actual = found.unwrap_or("not an image");
            return Err(ToolError::for_model(format!(
                "Error: {path} is {actual} by its content, and not {promised} as its name says."
            )));
        }
        let image =
            json!({ "mime_type": promised, "size": bytes.len(), "actual_path": path.to_string() });
        let update = StateUpdate::channel("viewed_images", json!({ path.to_string(): image }));
        let mark = json!({ "path": path.to_string(), "mime_type": promised, "size": bytes.len() });
        let mut output = ToolOutput {
            update,
            ..ToolOutput::text(format!("{path} is shown to you now."))
        };
        output
            .additional_kwargs
            .insert(kwargs::VIEWED_IMAGE.to_owned(), mark);
        Ok(output)
    }
}

fn type_of_ending(ending: &str) -> Option<&'static str> {
    match ending {
        "jpg" | "jpeg" => Some("image/jpeg"),
        "png" => Some("image/png"),
        "webp" => Some("image/webp"),
        "gif" => Some("image/gif"),
        _ => None,
    }
}

/// Detects the media type of an image by its first bytes; `None` if models do not accept the
/// format.
pub fn type_of_content(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        _ => None,
    }
}

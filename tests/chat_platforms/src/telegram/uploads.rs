//! Files of messages in both directions.

use bytes::Bytes;
use serde_json::{Value, json};

use super::entities::units;
use super::failure::ApiFailure;
use super::params::Params;
use super::sending::{count, formatted, keyboard, place, publish};
use super::shared::Shared;
use super::world::PostedFile;

/// Maximum size of a photo that the bot sends.
const MAX_PHOTO: usize = 10 * 1024 * 1024;
/// Maximum size of a file that the bot sends.
const MAX_SENT: usize = 50 * 1024 * 1024;
/// Maximum size of a file that the bot downloads.
const MAX_RECEIVED: u64 = 20 * 1024 * 1024;
/// Maximum length of a caption in UTF-16 units.
const MAX_CAPTION: usize = 1024;

/// Sends a photo or a document.
pub(super) fn send_file(
    shared: &Shared,
    params: &Params,
    kind: &'static str,
) -> Result<Value, ApiFailure> {
    let chat = params.required_int("chat_id")?;
    let source = params.text("caption").unwrap_or_default().to_owned();
    let caption = formatted(params, &source)?;
    if units(&caption.text) > MAX_CAPTION {
        return Err(ApiFailure::bad("message caption is too long"));
    }
    let keyboard = keyboard(params)?;
    let file = params.file(kind).map(|upload| PostedFile {
        kind,
        name: upload.name.clone(),
        media_type: upload.media_type.clone(),
        file_id: String::new(),
        size: upload.bytes.len() as u64,
        bytes: upload.bytes.clone(),
    });
    if let Some(file) = &file {
        check(file)?;
    }
    shared.change(|world| {
        let place = place(world, params, chat)?;
        let known = params
            .text(kind)
            .and_then(|id| world.files.get(id))
            .cloned();
        let file = match (file, known) {
            (Some(file), _) => world.store_file(file),
            (None, Some(known)) => known,
            (None, None) => {
                return Err(ApiFailure::bad(
                    "wrong remote file identifier specified: wrong string length",
                ));
            }
        };
        count(world, shared, chat)?;
        let mut post = world.new_post(chat, world.bot_id);
        post.text = caption.text;
        post.entities = caption.entities;
        post.source = source;
        post.keyboard = keyboard;
        post.file = Some(file);
        Ok(publish(world, chat, post, place))
    })
}

fn check(file: &PostedFile) -> Result<(), ApiFailure> {
    if file.bytes.is_empty() {
        return Err(ApiFailure::bad("file must be non-empty"));
    }
    if file.bytes.len() > MAX_SENT {
        return Err(ApiFailure::new(413, "Request Entity Too Large"));
    }
    if file.kind == "photo" {
        if file.bytes.len() > MAX_PHOTO {
            return Err(ApiFailure::bad("file is too big for a photo"));
        }
        if !is_image(&file.bytes) {
            return Err(ApiFailure::bad("IMAGE_PROCESS_FAILED"));
        }
    }
    Ok(())
}

fn is_image(bytes: &Bytes) -> bool {
    bytes.starts_with(b"\x89PNG\r\n\x1a\n")
        || bytes.starts_with(b"\xff\xd8\xff")
        || bytes.starts_with(b"GIF8")
        || (bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP"))
}

/// Returns the path of a file.
pub(super) fn get_file(shared: &Shared, params: &Params) -> Result<Value, ApiFailure> {
    let id = params.text("file_id").unwrap_or_default();
    let world = shared.world();
    let file = world
        .files
        .get(id)
        .ok_or_else(|| ApiFailure::bad("invalid file_id"))?;
    if file.size > MAX_RECEIVED {
        return Err(ApiFailure::bad("file is too big"));
    }
    Ok(json!({
        "file_id": id,
        "file_unique_id": format!("u{id}"),
        "file_size": file.size,
        "file_path": format!("{}s/{id}", file.kind),
    }))
}

/// Returns the content of a file by its path.
pub(super) fn download(shared: &Shared, path: &str) -> Option<Bytes> {
    let id = path
        .strip_prefix("photos/")
        .or_else(|| path.strip_prefix("documents/"))?;
    let world = shared.world();
    let file = world.files.get(id)?;
    (file.size <= MAX_RECEIVED).then(|| file.bytes.clone())
}

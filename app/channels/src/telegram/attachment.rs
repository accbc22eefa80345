//! Files of received messages.

use serde_json::{Value, json};

use crate::platform::IncomingFile;

/// Kinds of single files, with the name and the media type of a file that has none.
const KINDS: &[(&str, &str, &str)] = &[
    ("document", "document", "application/octet-stream"),
    ("audio", "audio.mp3", "audio/mpeg"),
    ("video", "video.mp4", "video/mp4"),
    ("voice", "voice.ogg", "audio/ogg"),
    ("video_note", "video.mp4", "video/mp4"),
];

/// Returns the files of a message.
pub(super) fn attachments(message: &Value) -> Vec<IncomingFile> {
    // An animation is announced as a document too, which is among the kinds.
    let single = KINDS.iter().filter_map(|(kind, name, media_type)| {
        let file = message.get(*kind)?;
        Some(IncomingFile {
            name: Some(text(file, "file_name").unwrap_or_else(|| (*name).to_owned())),
            media_type: Some(text(file, "mime_type").unwrap_or_else(|| (*media_type).to_owned())),
            size: file["file_size"].as_u64(),
            reference: reference(file)?,
        })
    });
    photo(message).into_iter().chain(single).collect()
}

/// Returns the largest size of a photo.
fn photo(message: &Value) -> Option<IncomingFile> {
    let sizes = message["photo"].as_array()?;
    let area = |size: &&Value| {
        let side = |name: &str| u128::from(size[name].as_u64().unwrap_or(0));
        side("width") * side("height")
    };
    let largest = sizes.iter().max_by_key(area)?;
    let name = match message["message_id"].as_i64() {
        Some(id) => format!("photo_{id}.jpg"),
        None => "photo.jpg".to_owned(),
    };
    Some(IncomingFile {
        name: Some(name),
        media_type: Some("image/jpeg".to_owned()),
        size: largest["file_size"].as_u64(),
        reference: reference(largest)?,
    })
}

fn reference(file: &Value) -> Option<Value> {
    let id = text(file, "file_id")?;
    Some(json!({"file_id": id}))
}

fn text(file: &Value, field: &str) -> Option<String> {
    file[field]
        .as_str()
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

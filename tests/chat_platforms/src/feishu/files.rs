//! Uploads, and files of received messages.

use bytes::Bytes;
use serde_json::{Value, json};

use super::refusal::Refusal;
use super::world::{FeishuFile, FeishuWorld};

/// Maximum size of an image.
const MAX_IMAGE: usize = 10 * 1024 * 1024;
/// Maximum size of a file.
const MAX_FILE: usize = 30 * 1024 * 1024;
/// Types of files.
const TYPES: [&str; 7] = ["opus", "mp4", "pdf", "doc", "xls", "ppt", "stream"];

/// Field of a form.
pub(super) struct FormField {
    pub(super) name: String,
    pub(super) bytes: Bytes,
}

/// Splits a form by its boundary.
pub(super) fn form(content_type: &str, body: &Bytes) -> Option<Vec<FormField>> {
    let (_, boundary) = content_type.split_once("boundary=")?;
    let boundary = format!("--{}", boundary.trim_matches('"'));
    let mut fields = Vec::new();
    let mut starts = Vec::new();
    let mut from = 0;
    while let Some(at) = find(&body[from..], boundary.as_bytes()) {
        starts.push(from + at);
        from += at + boundary.len();
    }
    for pair in starts.windows(2) {
        let start = pair[0] + boundary.len() + 2;
        let end = pair[1].checked_sub(2)?;
        let part = body.get(start..end)?;
        let head = find(part, b"\r\n\r\n")?;
        let headers = String::from_utf8_lossy(&part[..head]).into_owned();
        let (_, name) = headers.split_once("name=\"")?;
        let (name, _) = name.split_once('"')?;
        fields.push(FormField {
            name: name.to_owned(),
            bytes: body.slice(start + head + 4..end),
        });
    }
    Some(fields)
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    // A first byte that is rare in the haystack makes this fast enough for 30 MB.
    let first = *needle.first()?;
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|byte| *byte == first) {
        if bytes[from + at..].starts_with(needle) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

fn field<'a>(fields: &'a [FormField], name: &str) -> Result<&'a Bytes, Refusal> {
    fields
        .iter()
        .find(|field| field.name == name)
        .map(|field| &field.bytes)
        .ok_or_else(|| Refusal::fields(format!("{name} is missing")))
}

/// Returns the form as it is recorded.
pub(super) fn recorded(fields: &[FormField]) -> Value {
    fields
        .iter()
        .map(|field| {
            let value = match field.name.as_str() {
                "image" | "file" => json!({"size": field.bytes.len()}),
                _ => json!(String::from_utf8_lossy(&field.bytes)),
            };
            (field.name.clone(), value)
        })
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// Stores an image.
pub(super) fn image(world: &mut FeishuWorld, fields: &[FormField]) -> Result<Value, Refusal> {
    if field(fields, "image_type")?.as_ref() != b"message" {
        return Err(Refusal::fields("image_type is not message"));
    }
    let bytes = field(fields, "image")?.clone();
    if bytes.is_empty() || bytes.len() > MAX_IMAGE {
        return Err(Refusal::new(
            234_006,
            "the image is empty or larger than 10 MB",
        ));
    }
    let key = format!("img_v3_{}", world.number());
    let name = "image".to_owned();
    world.files.insert(
        key.clone(),
        FeishuFile {
            key: key.clone(),
            file_type: name.clone(),
            name,
            bytes,
            message_id: None,
        },
    );
    Ok(json!({"image_key": key}))
}

/// Stores a file.
pub(super) fn file(world: &mut FeishuWorld, fields: &[FormField]) -> Result<Value, Refusal> {
    let file_type = String::from_utf8_lossy(field(fields, "file_type")?).into_owned();
    if !TYPES.contains(&file_type.as_str()) {
        return Err(Refusal::new(234_001, "the file type does not exist"));
    }
    let name = String::from_utf8_lossy(field(fields, "file_name")?).into_owned();
    let bytes = field(fields, "file")?.clone();
    if name.is_empty() || bytes.is_empty() {
        return Err(Refusal::new(234_010, "the file is empty"));
    }
    if bytes.len() > MAX_FILE {
        return Err(Refusal::new(234_006, "the file is larger than 30 MB"));
    }
    let key = format!("file_v3_{}", world.number());
    world.files.insert(
        key.clone(),
        FeishuFile {
            key: key.clone(),
            file_type,
            name,
            bytes,
            message_id: None,
        },
    );
    Ok(json!({"file_key": key}))
}

/// Returns a file of a received message.
pub(super) fn resource(
    world: &FeishuWorld,
    message: &str,
    key: &str,
    kind: &str,
) -> Result<FeishuFile, Refusal> {
    let found = world
        .files
        .get(key)
        .filter(|file| file.message_id.as_deref() == Some(message))
        .ok_or_else(|| Refusal::new(234_003, "the file is not in this message"))?;
    let is_image = found.file_type == "image";
    match kind {
        "image" if is_image => Ok(found.clone()),
        "file" if !is_image => Ok(found.clone()),
        _ => Err(Refusal::new(234_001, "the type does not fit the key")),
    }
}

//! Methods of files.

use bytes::Bytes;
use serde_json::{Value, json};

use super::answer::{Failure, Outcome};
use super::params::Params;
use super::workspace::{BOT_USER, SlackFile, SlackMessage, Workspace};

/// Announces an upload.
pub(super) fn upload_url(workspace: &mut Workspace, params: &Params, base: &str) -> Outcome {
    let name = params.required("filename")?;
    let length = params.required("length")?;
    let size = length.parse().map_err(|_| Failure::argument("length"))?;
    if size == 0 {
        return Err(Failure::argument("length"));
    }
    let id = add(workspace, &name, "application/octet-stream", size, None);
    Ok(json!({"upload_url": format!("{base}/upload/v1/{id}"), "file_id": id}))
}

/// Receives the bytes of an upload.
pub(super) fn receive(workspace: &mut Workspace, id: &str, bytes: Bytes) -> Result<usize, String> {
    let file = workspace.files.get_mut(id).ok_or("no such upload")?;
    if file.bytes.is_some() {
        return Err("uploaded already".to_owned());
    }
    if file.size != bytes.len() {
        return Err(format!("{} bytes were announced", file.size));
    }
    let size = bytes.len();
    file.bytes = Some(bytes);
    Ok(size)
}

/// Shares uploaded files.
pub(super) fn complete(workspace: &mut Workspace, params: &Params, base: &str) -> Outcome {
    let listed = params
        .json("files")
        .ok_or_else(|| Failure::argument("files"))?;
    let listed = listed.as_array().cloned().unwrap_or_default();
    let channel_id = params.text("channel_id");
    let mut views = Vec::new();
    if listed.is_empty() {
        return Err(Failure::argument("files"));
    }
    for entry in &listed {
        let id = entry["id"].as_str().unwrap_or_default();
        let file = workspace
            .files
            .get(id)
            .filter(|file| file.bytes.is_some() && file.channels.is_empty())
            .ok_or_else(|| Failure::new("file_not_found"))?;
        views.push(view(id, file, base));
    }
    if let Some(channel_id) = &channel_id {
        let ts = workspace.next_ts();
        let thread = params.text("thread_ts");
        let channel = workspace.writable(channel_id)?;
        if thread
            .as_ref()
            .is_some_and(|thread| channel.message(thread).is_none())
        {
            return Err(Failure::new("thread_not_found"));
        }
        let comment = params.text("initial_comment").unwrap_or_default();
        let mut message = SlackMessage::new(ts, BOT_USER, &comment, thread);
        message.files.clone_from(&views);
        channel.messages.push(message);
        for entry in &listed {
            let id = entry["id"].as_str().unwrap_or_default();
            if let Some(file) = workspace.files.get_mut(id) {
                file.channels.push(channel_id.clone());
            }
        }
    }
    Ok(json!({"files": views}))
}

/// Describes a file.
pub(super) fn info(workspace: &mut Workspace, params: &Params, base: &str) -> Outcome {
    let id = params.required("file")?;
    let file = workspace
        .files
        .get(&id)
        .ok_or_else(|| Failure::new("file_not_found"))?;
    let mut described = view(&id, file, base);
    described["channels"] = json!(file.channels);
    Ok(json!({"file": described}))
}

/// Adds a file and returns its id.
pub(super) fn add(
    workspace: &mut Workspace,
    name: &str,
    media_type: &str,
    size: usize,
    bytes: Option<Bytes>,
) -> String {
    let id = format!("F{}", workspace.files.len() + 1);
    let file = SlackFile {
        name: name.to_owned(),
        media_type: media_type.to_owned(),
        size,
        bytes,
        channels: Vec::new(),
    };
    workspace.files.insert(id.clone(), file);
    id
}

/// Returns a file as events contain it.
pub(super) fn view(id: &str, file: &SlackFile, base: &str) -> Value {
    json!({
        "id": id,
        "name": file.name,
        "title": file.name,
        "mimetype": file.media_type,
        "size": file.size,
        "url_private": format!("{base}/files-pri/{id}/file"),
        "url_private_download": format!("{base}/files-pri/{id}/download/file"),
    })
}

//! Text and files of received messages as input of a run.

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use harness::ids::ThreadId;
use harness::runtime::actor_context::scope;
use serde_json::json;

use super::context::{Person, Turn, TurnError};
use super::progress::RowProgress;
use crate::platform::{ChatMessage, EventBody, IncomingFile, PlatformError};
use crate::words;

/// Maximum size of a received file, if the platform has no smaller limit.
const MAX_FILE_BYTES: u64 = 50 * 1024 * 1024;
/// Maximum number of files of one group of messages.
const MAX_FILES: usize = 20;
/// Files that are downloaded at the same time.
const CONCURRENT_DOWNLOADS: usize = 3;

/// Returns the joined text of the messages.
pub(super) fn text_of(turn: &Turn<'_>) -> String {
    let mut text = String::new();
    for message in messages(turn) {
        if !message.text.is_empty() {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&message.text);
        }
        if message.cut {
            text.push('\n');
            text.push_str(words::CUT);
        }
    }
    text
}

fn messages<'a>(turn: &'a Turn<'_>) -> impl Iterator<Item = &'a ChatMessage> {
    turn.group
        .iter()
        .filter_map(|received| match &received.event.body {
            EventBody::Message(message) => Some(message),
            _ => None,
        })
}

/// Reports whether the messages have files that are not received yet.
pub(super) fn has_files_to_receive(turn: &Turn<'_>, progress: &RowProgress) -> bool {
    !progress.files_done && messages(turn).any(|message| !message.files.is_empty())
}

/// Downloads the files of the messages into the uploads of the thread, once.
pub(super) async fn receive_files(
    turn: &Turn<'_>,
    person: &Person,
    thread: &ThreadId,
    progress: &mut RowProgress,
) -> Result<(), TurnError> {
    let files: Vec<&IncomingFile> = messages(turn).flat_map(|message| &message.files).collect();
    if !has_files_to_receive(turn, progress) {
        return Ok(());
    }
    progress.files.clear();
    progress.notes.clear();
    let bot = turn.bot;
    for (at, file) in files.iter().enumerate().skip(MAX_FILES) {
        let note = words::unreceived_file(&name_of(file, at), "there were too many files");
        progress.notes.push(note);
    }
    let downloads: Vec<_> = files
        .into_iter()
        .take(MAX_FILES)
        .enumerate()
        .map(|(at, file)| download(turn, file, name_of(file, at)).boxed())
        .collect();
    let mut downloaded = futures_util::stream::iter(downloads).buffered(CONCURRENT_DOWNLOADS);
    while let Some((name, result)) = downloaded.next().await {
        let bytes = match result {
            Ok(bytes) => bytes,
            Err(PlatformError::Refused(reason)) => {
                progress.notes.push(words::unreceived_file(&name, &reason));
                continue;
            }
            Err(error) if turn.group[0].row.failures < 2 => {
                return Err(TurnError::Retry(format!(
                    "a file cannot be downloaded: {error}"
                )));
            }
            Err(error) => {
                let note = words::unreceived_file(&name, &error.to_string());
                progress.notes.push(note);
                continue;
            }
        };
        let uploading = bot
            .hub
            .client
            .upload_bytes(thread, vec![(name.clone(), bytes)]);
        match scope(bot.actor(&person.user_id), uploading).await {
            Ok(uploaded) => {
                for skipped in &uploaded.skipped_files {
                    let note = words::unreceived_file(skipped, "its name is not permitted");
                    progress.notes.push(note);
                }
                for file in uploaded.files {
                    progress.files.push(json!({
                        "filename": file.filename,
                        "size": file.size,
                        "path": file.virtual_path,
                        "status": "uploaded",
                    }));
                }
            }
            Err(error) => {
                let note = words::unreceived_file(&name, &error.to_string());
                progress.notes.push(note);
            }
        }
    }
    progress.files_done = true;
    Ok(())
}

async fn download(
    turn: &Turn<'_>,
    file: &IncomingFile,
    name: String,
) -> (String, Result<Bytes, PlatformError>) {
    let platform = &turn.bot.platform;
    let limits = platform.abilities().files;
    let max = limits.map_or(MAX_FILE_BYTES, |limits| limits.receive);
    let bytes = platform.download(file, max).await;
    (name, bytes)
}

/// Returns the name of a file; one without a name gets the extension of its media type.
fn name_of(file: &IncomingFile, at: usize) -> String {
    if let Some(name) = file
        .name
        .as_deref()
        .map(str::trim)
        .filter(|name| !name.is_empty())
    {
        return name.to_owned();
    }
    let extension = match file.media_type.as_deref() {
        Some("image/jpeg") => "jpg",
        Some("image/png") => "png",
        Some("image/webp") => "webp",
        Some("image/gif") => "gif",
        Some("audio/ogg") => "ogg",
        Some("video/mp4") => "mp4",
        Some("application/pdf") => "pdf",
        _ => "bin",
    };
    format!("file-{}.{extension}", at + 1)
}

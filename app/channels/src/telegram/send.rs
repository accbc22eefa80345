//! Final messages: texts, edits that complete a live message, and files.

use serde_json::Value;

use crate::markup::Part;
use crate::platform::{Button, FileBody, PlatformError, Target};

use super::adapter::{MAX_SENT, TelegramPlatform};
use super::body::{Form, Style, keyboard};
use super::failure::{Failure, Problem};
use super::live_state::LiveState;

/// Maximum size of a photo in bytes.
const MAX_PHOTO: usize = 10 * 1024 * 1024;
/// Media types that are shown as photos.
const PHOTO_TYPES: &[&str] = &["image/jpeg", "image/png", "image/webp"];

impl TelegramPlatform {
    /// Completes the live message, or sends a new one; returns the id of the message.
    pub(super) async fn send_text(
        &self,
        target: &Target,
        part: &Part,
        buttons: &[Button],
        live: &Value,
    ) -> Result<i64, PlatformError> {
        let mut form = Form::first(target, self.final_style());
        if let Some(LiveState::Edit { chat, message }) = LiveState::decode(live) {
            let of_live = form.clone().in_chat(chat);
            if self.complete(of_live, message, part, buttons).await? {
                return Ok(message);
            }
        }
        loop {
            let body = form.text(part, keyboard(buttons));
            match self.api.call(form.send_method(), &body).await {
                Ok(sent) => return message_id(&sent),
                Err(failure) => form = next_form(&form, failure)?,
            }
        }
    }

    /// Writes the final text into the live message; `false` if that cannot be edited any more.
    async fn complete(
        &self,
        mut form: Form,
        message: i64,
        part: &Part,
        buttons: &[Button],
    ) -> Result<bool, PlatformError> {
        loop {
            let body = form.edit(message, part, keyboard(buttons));
            let failure = match self.api.call("editMessageText", &body).await {
                Ok(_) => return Ok(true),
                Err(failure) => failure,
            };
            match failure.problem {
                Problem::NotModified => return Ok(true),
                Problem::NotEditable | Problem::Migrated(_) => return Ok(false),
                // The chat may refuse edits for another reason, and take a new message.
                Problem::Refused if form.style != Style::Rich => return Ok(false),
                _ => form = next_form(&form, failure)?,
            }
        }
    }

    /// Sends a photo or a document; returns the id of the message.
    pub(super) async fn send_file(
        &self,
        target: &Target,
        file: &FileBody,
    ) -> Result<i64, PlatformError> {
        if file.bytes.len() as u64 > MAX_SENT {
            return Err(PlatformError::Refused(
                "the file is larger than 50 MB, the maximum for bots on telegram".to_owned(),
            ));
        }
        if file.bytes.is_empty() {
            return Err(PlatformError::Refused("the file is empty".to_owned()));
        }
        let mut form = Form::first(target, Style::Plain);
        let mut as_photo = is_photo(file);
        loop {
            let (method, field) = if as_photo {
                ("sendPhoto", "photo")
            } else {
                ("sendDocument", "document")
            };
            match self.api.upload(method, fields(&form), field, file).await {
                Ok(sent) => return message_id(&sent),
                // The image may have dimensions or content that photos must not have.
                Err(failure) if as_photo && failure.problem == Problem::Refused => {
                    tracing::debug!(error = %failure.description, "photo refused, sending a file");
                    as_photo = false;
                }
                Err(failure) => form = next_form(&form, failure)?,
            }
        }
    }
}

/// Returns the next form, or the error if no other form would help.
pub(super) fn next_form(form: &Form, failure: Failure) -> Result<Form, PlatformError> {
    let Some(next) = form.after(failure.problem) else {
        return Err(failure.into());
    };
    tracing::debug!(error = %failure.description, "message refused, trying another form");
    Ok(next)
}

/// Returns the id of a sent message.
pub(super) fn message_id(sent: &Value) -> Result<i64, PlatformError> {
    sent["message_id"].as_i64().ok_or_else(|| {
        PlatformError::Unavailable("telegram did not return the id of the message".to_owned())
    })
}

fn is_photo(file: &FileBody) -> bool {
    PHOTO_TYPES.contains(&file.media_type.as_str()) && file.bytes.len() <= MAX_PHOTO
}

/// Returns the destination as text fields of a multipart body.
fn fields(form: &Form) -> Vec<(&'static str, String)> {
    let mut place = form.place();
    ["chat_id", "message_thread_id", "reply_parameters"]
        .into_iter()
        .filter_map(|name| {
            let text = match place.remove(name)? {
                Value::String(text) => text,
                other => other.to_string(),
            };
            Some((name, text))
        })
        .collect()
}

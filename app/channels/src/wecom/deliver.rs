//! Sending of texts, live updates and files.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::adapter::WeComPlatform;
use super::failure::{Outcome, outcome};
use super::frame;
use super::route::{LiveStep, LiveStream, Question, Route, final_route, live_step};
use super::upload;
use crate::markup::preview;
use crate::platform::{
    Delivery, FileBody, LiveReply, OutgoingMessage, PlatformError, Sent, Target, TextLimit,
};

/// Words that finish a stream whose answer follows in a new message.
const CONTINUES: &str = "The answer takes longer and follows in a new message.";
/// Command of a message that answers none.
const SEND: &str = "aibot_send_msg";
/// Command of an answer.
const RESPOND: &str = "aibot_respond_msg";

/// Milliseconds after an attempt to finish a stream in which the stream cannot have expired.
const FRESH_MS: i64 = 300_000;

/// Attempt to finish a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Finish {
    connection: String,
    stream: String,
    /// Time in milliseconds.
    at: i64,
}

/// Results of earlier attempts of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
struct Progress {
    /// Attempt to finish a stream whose answer was lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    finish: Option<Finish>,
    /// Uploaded file.
    #[serde(skip_serializing_if = "Option::is_none")]
    media_id: Option<String>,
}

impl Progress {
    fn read(delivery: &Delivery) -> Self {
        Self::deserialize(&delivery.progress).unwrap_or_default()
    }

    fn write(&self, delivery: &mut Delivery) {
        delivery.progress = json!(self);
    }
}

impl WeComPlatform {
    /// Sends a text: as the last update of a stream where that is possible.
    pub(super) async fn deliver_text(
        &self,
        message: &OutgoingMessage,
        text: &str,
        delivery: &mut Delivery,
    ) -> Result<Sent, PlatformError> {
        let target = &message.target;
        let connection = self.line.connection()?;
        let route = final_route(
            &message.live,
            &target.context,
            &connection,
            self.now_ms(),
            delivery.id.simple().to_string(),
        );
        match route {
            Route::Finish { req_id, stream } if self.line.assign(&req_id, &stream) => {
                let is_repeated = self.note_finish(delivery, connection, &stream);
                match self.respond(&req_id, &stream, text, true).await? {
                    Outcome::Done => Ok(Sent { ids: vec![stream] }),
                    // The attempt whose answer was lost has finished the stream.
                    Outcome::Expired if is_repeated => Ok(Sent { ids: vec![stream] }),
                    Outcome::Unknown | Outcome::Expired => self.push_text(target, text).await,
                    Outcome::Failed(error) => Err(error),
                }
            }
            Route::CloseAndPush { req_id, stream } => {
                if let Err(error) = self.close_stream(&req_id, &stream, "").await {
                    tracing::warn!(%error, stream, "stream of wecom was not finished");
                }
                self.push_text(target, text).await
            }
            Route::Finish { .. } | Route::Push => self.push_text(target, text).await,
        }
    }

    /// Records an attempt to finish a stream. Returns whether a recent attempt did the same.
    fn note_finish(&self, delivery: &mut Delivery, connection: String, stream: &str) -> bool {
        let mut progress = Progress::read(delivery);
        let now = self.now_ms();
        let is_repeated = progress.finish.as_ref().is_some_and(|finish| {
            finish.connection == connection
                && finish.stream == stream
                && now.saturating_sub(finish.at) < FRESH_MS
        });
        if !is_repeated {
            progress.finish = Some(Finish {
                connection,
                stream: stream.to_owned(),
                at: now,
            });
            progress.write(delivery);
        }
        is_repeated
    }

    /// Shows the text so far.
    pub(super) async fn update_stream(
        &self,
        reply: &mut LiveReply,
        markdown: &str,
    ) -> Result<(), PlatformError> {
        let connection = self.line.connection()?;
        let limit = self.limit();
        let text = preview(markdown, self.dialect(), limit);
        if text.is_empty() {
            return Ok(());
        }
        let now = self.now_ms();
        match live_step(&reply.state, &reply.target.context, &connection, now) {
            LiveStep::Begin(question) => {
                let stream = reply.key.simple().to_string();
                if !self.line.assign(&question.req_id, &stream) {
                    return Ok(());
                }
                let begun = new_stream(question, stream, now);
                self.show_in(reply, begun, &text).await
            }
            LiveStep::Update(live) => self.show_in(reply, live, &text).await,
            LiveStep::Close(mut live) => {
                self.close_stream(&live.question.req_id, &live.stream, markdown)
                    .await?;
                live.closed = true;
                reply.state = json!(live);
                Ok(())
            }
            LiveStep::Nothing => Ok(()),
        }
    }

    async fn show_in(
        &self,
        reply: &mut LiveReply,
        mut live: LiveStream,
        text: &str,
    ) -> Result<(), PlatformError> {
        // The state is kept even if the answer is lost: the update may have had its effect.
        if reply.state.is_null() {
            reply.state = json!(live);
        }
        let outcome = self
            .respond(&live.question.req_id, &live.stream, text, false)
            .await?;
        match outcome {
            Outcome::Done => live.updated = self.now_ms(),
            Outcome::Unknown | Outcome::Expired => live.closed = true,
            Outcome::Failed(error) => return Err(error),
        }
        reply.state = json!(live);
        Ok(())
    }

    /// Finishes a stream with the text so far and words that the answer follows.
    async fn close_stream(
        &self,
        req_id: &str,
        stream: &str,
        markdown: &str,
    ) -> Result<(), PlatformError> {
        let limit = self.limit();
        let shorter = TextLimit {
            max: limit.max.saturating_sub(CONTINUES.len() + 2),
            ..limit
        };
        let text = match preview(markdown, self.dialect(), shorter) {
            text if text.is_empty() => CONTINUES.to_owned(),
            text => format!("{text}\n\n{CONTINUES}"),
        };
        match self.respond(req_id, stream, &text, true).await? {
            Outcome::Done | Outcome::Unknown | Outcome::Expired => Ok(()),
            Outcome::Failed(error) => Err(error),
        }
    }

    /// Sends a file: as an image if the platform takes it as one.
    pub(super) async fn deliver_file(
        &self,
        target: &Target,
        file: &FileBody,
        delivery: &mut Delivery,
    ) -> Result<Sent, PlatformError> {
        let mut progress = Progress::read(delivery);
        let media_id = match &progress.media_id {
            Some(media_id) => media_id.clone(),
            None => upload::upload(&self.line, file, self.now_ms()).await?,
        };
        progress.media_id = Some(media_id.clone());
        progress.write(delivery);
        let kind = upload::kind(file);
        let mut body = json!({"chatid": target.chat.id, "msgtype": kind});
        body[kind] = json!({"media_id": media_id});
        self.push(body).await
    }

    async fn push_text(&self, target: &Target, text: &str) -> Result<Sent, PlatformError> {
        self.push(json!({
            "chatid": target.chat.id,
            "msgtype": "markdown",
            "markdown": {"content": text},
        }))
        .await
    }

    async fn push(&self, body: Value) -> Result<Sent, PlatformError> {
        let req_id = frame::new_request_id(SEND, self.now_ms());
        let answer = self.line.call(SEND, req_id, body).await?;
        match outcome(&answer) {
            Outcome::Done => Ok(Sent::default()),
            Outcome::Unknown | Outcome::Expired => Err(PlatformError::Refused(
                "wecom does not know the conversation".to_owned(),
            )),
            Outcome::Failed(error) => Err(error),
        }
    }

    async fn respond(
        &self,
        req_id: &str,
        stream: &str,
        content: &str,
        finish: bool,
    ) -> Result<Outcome, PlatformError> {
        let body = json!({
            "msgtype": "stream",
            "stream": {"id": stream, "finish": finish, "content": content},
        });
        let answer = self.line.call(RESPOND, req_id.to_owned(), body).await?;
        Ok(outcome(&answer))
    }
}

fn new_stream(question: Question, stream: String, now: i64) -> LiveStream {
    LiveStream {
        question,
        stream,
        begun: now,
        updated: now,
        closed: false,
    }
}

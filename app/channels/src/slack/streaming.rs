//! Live messages: streams, and edited messages where streams are missing or have ended.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use uuid::Uuid;

use super::api::{Api, Body};
use super::budget::Urgency;
use super::failure::{Failure, platform_error};
use super::live::{Live, StreamStep, digest, post_key, stream_step, tail, visible};
use super::post::{Words, answers, find, find_in, find_stream, metadata, post, put, thread_of};
use super::text;
use crate::markup::{self, Dialect, Part};
use crate::platform::{
    Button, Delivery, LengthUnit, LiveReply, OutgoingMessage, PlatformError, TextLimit,
};

/// Limit of a message's text: below the 4,000 bytes of `chat.update`.
pub(super) const TEXT_LIMIT: TextLimit = TextLimit {
    unit: LengthUnit::Utf8Bytes,
    max: 3_900,
};
/// Codes after which streams are not tried again.
const NO_STREAMS: &[&str] = &["unknown_method", "method_deprecated", "feature_not_enabled"];
/// Codes of a message that cannot be edited any more.
const GONE: &[&str] = &[
    "message_not_found",
    "cant_update_message",
    "edit_window_closed",
    "update_failed",
    "streaming_state_conflict",
];

/// Driver of live messages.
#[derive(Debug)]
pub(super) struct LiveMessages<'a> {
    /// Client.
    pub(super) api: &'a Api,
    /// Set when Slack does not know streams.
    pub(super) without_streams: &'a AtomicBool,
    /// Current time in milliseconds.
    pub(super) now: i64,
}

impl LiveMessages<'_> {
    /// Shows the text so far.
    pub(super) async fn update(
        &self,
        reply: &mut LiveReply,
        markdown: &str,
    ) -> Result<(), PlatformError> {
        let mut state = Live::decode(&reply.state);
        let result = self.advance(&mut state, reply, markdown).await;
        reply.state = Live::encode(state.as_ref());
        match result {
            // An update that the budget does not allow is dropped; the next one shows its text.
            Ok(()) | Err((_, Failure::Held(_))) => Ok(()),
            Err((method, failure)) => Err(platform_error(method, failure)),
        }
    }

    async fn advance(&self, state: &mut Option<Live>, reply: &LiveReply, markdown: &str) -> Step {
        match state.clone() {
            None => self.begin(state, reply, markdown).await,
            Some(Live::Off) => Ok(()),
            Some(Live::Edit { .. }) => self.edit(state, reply, markdown).await,
            Some(Live::Stream {
                ts,
                length,
                digest,
                started,
                ..
            }) => {
                let text = visible(markdown, TEXT_LIMIT.max);
                match stream_step(length, &digest, started, &text, self.now) {
                    StreamStep::Nothing => Ok(()),
                    StreamStep::Edit => {
                        *state = Some(Live::edited(ts, reply.key));
                        self.edit(state, reply, markdown).await
                    }
                    StreamStep::Append(suffix) => {
                        let body = json!({"channel": reply.target.chat.id, "ts": ts, "markdown_text": suffix});
                        let method = "chat.appendStream";
                        match self
                            .api
                            .budgeted(method, Urgency::Live, Body::Json(body))
                            .await
                        {
                            Ok(_) => {
                                *state = Some(streamed(ts, &text, started, markdown));
                                Ok(())
                            }
                            Err(Failure::Code { code, .. }) => {
                                tracing::debug!(code, "stream ended, continuing by editing");
                                *state = Some(Live::edited(ts, reply.key));
                                self.edit(state, reply, markdown).await
                            }
                            Err(Failure::Lost(problem)) => {
                                // A repeated append could show its text twice.
                                *state = Some(Live::edited(ts, reply.key));
                                Err((method, Failure::Lost(problem)))
                            }
                            Err(failure) => Err((method, failure)),
                        }
                    }
                }
            }
        }
    }

    async fn begin(&self, state: &mut Option<Live>, reply: &LiveReply, markdown: &str) -> Step {
        let text = visible(markdown, TEXT_LIMIT.max);
        if text.trim().is_empty() {
            return Ok(());
        }
        let Some(mut body) = self.stream_body(reply) else {
            *state = Some(Live::unposted(reply.key));
            return self.edit(state, reply, markdown).await;
        };
        body["markdown_text"] = json!(text);
        let method = "chat.startStream";
        match self
            .api
            .budgeted(method, Urgency::Live, Body::Json(body))
            .await
        {
            Ok(answer) => {
                let Some(ts) = answer["ts"].as_str() else {
                    *state = Some(Live::unposted(reply.key));
                    return Ok(());
                };
                self.api.stream_opened(ts);
                *state = Some(streamed(ts.to_owned(), &text, self.now, markdown));
                Ok(())
            }
            Err(failure @ Failure::Code { .. }) => {
                if failure.is(NO_STREAMS) && !self.without_streams.swap(true, Ordering::Relaxed) {
                    tracing::info!("slack does not know streams here, answers are edited");
                }
                *state = Some(Live::unposted(reply.key));
                self.edit(state, reply, markdown).await
            }
            // After a lost result the stream may exist. The next update searches for it.
            Err(failure) => Err((method, failure)),
        }
    }

    /// Searches for a live message that exists although its state is unknown. `user` is the bot.
    /// Without one the answer continues as an edited message: its post has a key, so that another
    /// repetition finds it.
    pub(super) async fn search(
        &self,
        reply: &mut LiveReply,
        markdown: &str,
        user: &str,
    ) -> Result<(), PlatformError> {
        let mut state = Live::unposted(reply.key);
        // Streams exist in threads only.
        if thread_of(&reply.target).is_some() {
            match answers(self.api, &reply.target).await {
                Ok(found) => {
                    let posted = find_in(&found, &post_key(reply.key, 0).to_string());
                    if let Some(ts) = posted.or_else(|| find_stream(&found, user, markdown)) {
                        state = Live::edited(ts, reply.key);
                    }
                }
                Err(failure @ Failure::Code { .. }) => {
                    tracing::debug!(?failure, "an earlier stream cannot be searched for");
                }
                Err(failure) => return Err(platform_error("conversations.replies", failure)),
            }
        }
        reply.state = Live::encode(Some(&state));
        Ok(())
    }

    /// Returns the body of a new stream, unless streams are impossible here.
    fn stream_body(&self, reply: &LiveReply) -> Option<Value> {
        if self.without_streams.load(Ordering::Relaxed) || !self.api.may_stream() {
            return None;
        }
        let target = &reply.target;
        let thread = thread_of(target)?;
        let mut body = json!({"channel": target.chat.id, "thread_ts": thread});
        let team = target.context["team"].as_str().unwrap_or(&target.workspace);
        if !team.is_empty() && !target.person.is_empty() {
            body["recipient_team_id"] = json!(team);
            body["recipient_user_id"] = json!(target.person);
        } else if !target.is_direct() {
            return None;
        }
        Some(body)
    }

    async fn edit(&self, state: &mut Option<Live>, reply: &LiveReply, markdown: &str) -> Step {
        let Some(Live::Edit {
            ts,
            key,
            generation,
            streaming,
            digest: shown,
        }) = state.clone()
        else {
            return Ok(());
        };
        let markup = first_part(markdown).markup;
        let buttons: Vec<Button> = reply.stop.iter().cloned().collect();
        let words = Words {
            markup: &markup,
            buttons: &buttons,
        };
        let next = |ts: Option<String>, streaming: bool, digest: String| {
            Some(Live::Edit {
                ts,
                key,
                generation,
                streaming,
                digest,
            })
        };
        let channel = &reply.target.chat.id;
        let Some(ts) = ts else {
            if markup.trim().is_empty() {
                return Ok(());
            }
            let method = "chat.postMessage";
            let posted = post(self.api, &reply.target, words, post_key(key, generation)).await;
            match posted {
                Ok(Some(ts)) => *state = next(Some(ts), false, digest(&markup)),
                Ok(None) => *state = Some(Live::replaced(key, generation)),
                Err(failure) => return Err((method, failure)),
            }
            return Ok(());
        };
        if streaming {
            self.stop(channel, &ts, "", None).await?;
            *state = next(Some(ts.clone()), false, String::new());
        }
        let digest = digest(&markup);
        if digest == shown {
            return Ok(());
        }
        match put(self.api, channel, &ts, words, None).await {
            Ok(()) => {
                *state = next(Some(ts), false, digest);
                Ok(())
            }
            Err(failure) if failure.is(GONE) => {
                *state = Some(Live::replaced(key, generation));
                Ok(())
            }
            Err(failure) => {
                if matches!(failure, Failure::Code { .. }) {
                    *state = Some(Live::Off);
                }
                Err(("chat.update", failure))
            }
        }
    }

    /// Sends a final text: completes the live message, or posts a new one. Returns its timestamp.
    pub(super) async fn finish(
        &self,
        message: &OutgoingMessage,
        part: &Part,
        buttons: &[Button],
        delivery: &Delivery,
    ) -> Result<Option<String>, PlatformError> {
        let words = Words {
            markup: &part.markup,
            buttons,
        };
        let result = self.complete(message, part, words, delivery).await;
        result.map_err(|(method, failure)| platform_error(method, failure))
    }

    async fn complete(
        &self,
        message: &OutgoingMessage,
        part: &Part,
        words: Words<'_>,
        delivery: &Delivery,
    ) -> Result<Option<String>, (&'static str, Failure)> {
        let target = &message.target;
        let channel = &target.chat.id;
        let key = Some(delivery.id);
        let ts = match Live::decode(&message.live) {
            None | Some(Live::Off) => None,
            Some(Live::Stream {
                ts,
                length,
                digest: shown,
                rendered,
                ..
            }) => {
                let rest = if rendered == digest(&part.markup) {
                    Some(String::new())
                } else {
                    tail(length, &shown, part)
                };
                let rest = rest.filter(|_| words.buttons.is_empty());
                let stopped = self.stop(channel, &ts, rest.as_deref().unwrap_or(""), key);
                if stopped.await? && rest.is_some() {
                    return Ok(Some(ts));
                }
                Some(ts)
            }
            Some(Live::Edit {
                ts: Some(ts),
                streaming,
                ..
            }) => {
                if streaming {
                    self.stop(channel, &ts, "", key).await?;
                }
                Some(ts)
            }
            Some(Live::Edit {
                ts: None,
                key,
                generation,
                ..
            }) => {
                // An earlier post may have had its effect; its key finds the message.
                let key = post_key(key, generation);
                post(self.api, target, words, key)
                    .await
                    .map_err(|failure| ("chat.postMessage", failure))?
            }
        };
        if let Some(ts) = ts {
            match put(self.api, channel, &ts, words, key).await {
                Ok(()) => return Ok(Some(ts)),
                Err(failure) if failure.is(GONE) => {}
                Err(failure) => return Err(("chat.update", failure)),
            }
        }
        if delivery.attempt > 1
            && let Some(ts) = find(self.api, target, delivery.id).await
        {
            return Ok(Some(ts));
        }
        post(self.api, target, words, delivery.id)
            .await
            .map_err(|failure| ("chat.postMessage", failure))
    }

    /// Stops a stream; `false` if it had ended before. `key` marks the final text of an answer.
    async fn stop(
        &self,
        channel: &str,
        ts: &str,
        rest: &str,
        key: Option<Uuid>,
    ) -> Result<bool, (&'static str, Failure)> {
        let method = "chat.stopStream";
        let urgency = key.map_or(Urgency::Live, |_| Urgency::Final);
        let mut body = json!({"channel": channel, "ts": ts});
        if let Some(key) = key {
            body["metadata"] = metadata(key);
        }
        if !rest.is_empty() {
            body["markdown_text"] = json!(rest);
        }
        match self.api.budgeted(method, urgency, Body::Json(body)).await {
            Ok(_) => {
                self.api.stream_ended(ts);
                Ok(true)
            }
            Err(Failure::Code { .. }) => {
                self.api.stream_ended(ts);
                Ok(false)
            }
            Err(failure) => Err((method, failure)),
        }
    }
}

type Step = Result<(), (&'static str, Failure)>;

/// Returns the first part of a text in mrkdwn.
fn first_part(markdown: &str) -> Part {
    let parts = markup::parts(markdown, Dialect::SlackMrkdwn, TEXT_LIMIT);
    parts.into_iter().next().unwrap_or_else(|| {
        let plain = visible(markdown, TEXT_LIMIT.max);
        Part {
            markup: text::escape(&plain),
            plain,
        }
    })
}

/// Returns the state of a stream that shows a text of this Markdown.
fn streamed(ts: String, text: &str, started: i64, markdown: &str) -> Live {
    let mut parts = markup::parts(markdown, Dialect::SlackMrkdwn, TEXT_LIMIT);
    let is_whole = parts.len() < 2 && text == text::without_notifications(markdown, false);
    let part = parts.pop().unwrap_or_else(|| first_part(markdown));
    Live::stream(ts, text, started, is_whole.then_some(part.markup.as_str()))
}

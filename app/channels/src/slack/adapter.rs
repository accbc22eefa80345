//! The adapter.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use harness::clock::Clock;
use serde_json::json;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::api::{Api, Body};
use super::budget::Urgency;
use super::events::Me;
use super::failure::{Failure, platform_error};
use super::links::Timing;
use super::listen::Listener;
use super::post::thread_of;
use super::streaming::{LiveMessages, TEXT_LIMIT};
use super::text::{escape, is_timestamp};
use super::{download, scopes, upload};
use crate::markup::Dialect;
use crate::platform::{
    Abilities, Content, Delivery, EventSink, FileBody, FileLimits, GroupConversations, Identity,
    IncomingFile, LivePacing, LiveReply, OutgoingMessage, Platform, PlatformError, Rates, Receipt,
    Sent, Target,
};

/// Steady interval of updates and posts in one channel.
const INTERVAL: Duration = Duration::from_millis(1_200);
/// Maximum size of a file in bytes.
const MAX_FILE: u64 = 50 * 1024 * 1024;

/// Returns the abilities of Slack.
fn abilities() -> Abilities {
    Abilities {
        dialect: Dialect::SlackMrkdwn,
        text: TEXT_LIMIT,
        live: Some(LivePacing {
            direct: INTERVAL,
            group: INTERVAL,
            keep_alive: None,
        }),
        rates: Rates {
            account_per_second: 15,
            chat_interval: INTERVAL,
            group_per_minute: None,
            counts_signs: false,
        },
        files: Some(FileLimits {
            receive: MAX_FILE,
            send: MAX_FILE,
        }),
        buttons: true,
        typing: None,
        groups: GroupConversations::Chat,
        needs_connection: false,
        // Redeliveries end after some six minutes, which is shorter than an inbox may stay full.
        redelivers: false,
    }
}

/// Bot of one Slack app.
#[derive(Debug)]
pub(super) struct SlackPlatform {
    api: Api,
    clock: Arc<dyn Clock>,
    dm_threads: bool,
    timing: Timing,
    abilities: Abilities,
    me: OnceCell<Me>,
    without_streams: AtomicBool,
}

impl SlackPlatform {
    /// Creates the adapter.
    pub(super) fn new(api: Api, clock: Arc<dyn Clock>, dm_threads: bool, timing: Timing) -> Self {
        Self {
            api,
            clock,
            dm_threads,
            timing,
            abilities: abilities(),
            me: OnceCell::new(),
            without_streams: AtomicBool::new(false),
        }
    }

    async fn who_am_i(&self) -> Result<(Me, Identity), PlatformError> {
        let method = "auth.test";
        let (answer, granted) = self
            .api
            .call_with_scopes(method, Body::Json(json!({})))
            .await
            .map_err(|failure| platform_error(method, failure))?;
        let text_of = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
        let (team, user) = (text_of("team_id"), text_of("user_id"));
        if team.is_empty() || user.is_empty() {
            return Err(PlatformError::Unavailable(
                "slack named neither team nor user of the bot".to_owned(),
            ));
        }
        let mut warnings = Vec::new();
        if !self.api.has_bot_token() {
            warnings.push("bot_token does not begin with xoxb-: enter the bot token".to_owned());
        }
        if !self.api.has_app_token() {
            warnings
                .push("app_token does not begin with xapp-: enter an app-level token".to_owned());
        }
        warnings.extend(scopes::missing(granted.as_deref()));
        let identity = Identity {
            account: format!("{team}:{user}"),
            name: text_of("user"),
            warnings,
        };
        let me = Me {
            team,
            user,
            dm_threads: self.dm_threads,
        };
        Ok((me, identity))
    }

    async fn me(&self) -> Result<&Me, PlatformError> {
        let me = async { self.who_am_i().await.map(|(me, _)| me) };
        self.me.get_or_try_init(|| me).await
    }

    fn live(&self) -> LiveMessages<'_> {
        LiveMessages {
            api: &self.api,
            without_streams: &self.without_streams,
            now: self.clock.now().timestamp_millis(),
        }
    }
}

#[async_trait]
impl Platform for SlackPlatform {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    async fn identify(&self) -> Result<Identity, PlatformError> {
        let (_, identity) = self.who_am_i().await?;
        Ok(identity)
    }

    async fn listen(
        &self,
        sink: &dyn EventSink,
        cursor: Option<String>,
        stop: CancellationToken,
    ) -> Result<(), PlatformError> {
        let me = tokio::select! {
            me = self.me() => me?,
            () = stop.cancelled() => return Ok(()),
        };
        let listener = Listener::new(
            &self.api,
            me,
            self.timing,
            &*self.clock,
            sink,
            cursor.as_deref(),
        );
        listener.run(stop).await
    }

    async fn send(
        &self,
        message: &OutgoingMessage,
        file: Option<FileBody>,
        delivery: &mut Delivery,
    ) -> Result<Sent, PlatformError> {
        let ts = match &message.content {
            Content::Text(part) => self.live().finish(message, part, &[], delivery).await?,
            Content::Buttons { text, buttons } => {
                self.live().finish(message, text, buttons, delivery).await?
            }
            Content::File { .. } => {
                let file =
                    file.ok_or_else(|| PlatformError::Refused("the file is missing".to_owned()))?;
                return upload::upload(&self.api, &message.target, &file, delivery).await;
            }
            Content::TextFile { name, text } => {
                let file = FileBody {
                    name: name.clone(),
                    media_type: "text/markdown".to_owned(),
                    bytes: Bytes::from(text.clone()),
                };
                return upload::upload(&self.api, &message.target, &file, delivery).await;
            }
        };
        Ok(Sent {
            ids: ts.into_iter().collect(),
        })
    }

    async fn update_live(
        &self,
        reply: &mut LiveReply,
        markdown: &str,
    ) -> Result<(), PlatformError> {
        if reply.may_exist && reply.state.is_null() {
            let me = self.me().await?;
            self.live().search(reply, markdown, &me.user).await?;
        }
        self.live().update(reply, markdown).await
    }

    fn finds_live(&self) -> bool {
        true
    }

    async fn show(&self, target: &Target, receipt: Receipt) -> Result<(), PlatformError> {
        let name = match receipt {
            Receipt::Received => "eyes",
            Receipt::Done => "white_check_mark",
            Receipt::Failed => "x",
            Receipt::Working => return Ok(()),
        };
        let Some(message) = target.reply_to.as_deref().filter(|ts| is_timestamp(ts)) else {
            return Ok(());
        };
        let method = "reactions.add";
        let fields = vec![
            ("channel", target.chat.id.clone()),
            ("name", name.to_owned()),
            ("timestamp", message.to_owned()),
        ];
        let urgency = Urgency::Live;
        match self.api.budgeted(method, urgency, Body::Form(fields)).await {
            Err(Failure::Held(_)) => Ok(()),
            Err(failure) if !failure.is(&["already_reacted"]) => {
                Err(platform_error(method, failure))
            }
            _ => Ok(()),
        }
    }

    async fn confirm_press(&self, target: &Target, text: &str) -> Result<(), PlatformError> {
        if text.is_empty() {
            return Ok(());
        }
        let method = "chat.postEphemeral";
        let mut body = json!({
            "channel": target.chat.id,
            "user": target.person,
            "text": escape(text),
        });
        if let Some(thread) = thread_of(target) {
            body["thread_ts"] = json!(thread);
        }
        let result = self.api.call(method, Body::Json(body)).await;
        result
            .map(drop)
            .map_err(|failure| platform_error(method, failure))
    }

    async fn download(&self, file: &IncomingFile, max: u64) -> Result<Bytes, PlatformError> {
        download::download(&self.api, file, max).await
    }
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod files_tests;
#[cfg(test)]
#[path = "listen_tests.rs"]
mod listen_tests;
#[cfg(test)]
#[path = "live_tests.rs"]
mod live_tests;
#[cfg(test)]
#[path = "adapter_tests.rs"]
mod tests;

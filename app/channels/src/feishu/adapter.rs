//! Adapter of Feishu.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::Method;
use parking_lot::Mutex;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::api::{ApiBody, ApiCall, FeishuApi};
use super::cardkit::CardKit;
use super::cards::TEXT_LIMIT;
use super::decode::id;
use super::deliver::{MAX_FILE, send};
use super::failure::FeishuFailure;
use super::listen::listen;
use super::live::{prepare, update};
use super::scopes;
use crate::markup::Dialect;
use crate::platform::{
    Abilities, Delivery, EventSink, FileBody, FileLimits, GroupConversations, Identity,
    IncomingFile, LivePacing, LiveReply, OutgoingMessage, Platform, PlatformError, Rates, Receipt,
    Sent, Target,
};

/// Maximum size of a received file.
const MAX_DOWNLOAD: u64 = 100 * 1024 * 1024;

/// The bot as the platform describes it.
#[derive(Debug, Clone)]
struct BotInfo {
    open_id: String,
    name: String,
}

/// Bot on Feishu or Lark.
#[derive(Debug)]
pub(super) struct FeishuPlatform {
    api: FeishuApi,
    kit: CardKit,
    abilities: Abilities,
    bot: Mutex<Option<BotInfo>>,
    /// `true` after the platform did not answer who the bot is.
    asked_in_vain: AtomicBool,
}

impl FeishuPlatform {
    pub(super) fn new(api: FeishuApi) -> Self {
        Self {
            api,
            kit: CardKit::default(),
            abilities: abilities(),
            bot: Mutex::default(),
            asked_in_vain: AtomicBool::new(false),
        }
    }

    async fn ask_for_bot(&self) -> Result<BotInfo, FeishuFailure> {
        let path = ["bot", "v3", "info"];
        let call = ApiCall::new(Method::GET, &path, ApiBody::Empty);
        let answer = self.api.call(&call).await?;
        // Some tenants have an envelope.
        let bot = [&answer["bot"], &answer["data"]["bot"]]
            .into_iter()
            .find(|bot| bot.is_object())
            .unwrap_or(&serde_json::Value::Null);
        let open_id = id(&bot["open_id"]).ok_or_else(|| {
            FeishuFailure::Refused("the answer lacks the id of the bot".to_owned())
        })?;
        let info = BotInfo {
            open_id: open_id.to_owned(),
            name: id(&bot["app_name"]).unwrap_or("Feishu").to_owned(),
        };
        *self.bot.lock() = Some(info.clone());
        Ok(info)
    }

    /// Returns the open id of the bot. A final or repeated failure is ignored: then every mention in
    /// a group is taken for that of the bot.
    async fn open_id(&self) -> Result<Option<String>, PlatformError> {
        let known = self.bot.lock().as_ref().map(|bot| bot.open_id.clone());
        if known.is_some() {
            return Ok(known);
        }
        match self.ask_for_bot().await {
            Ok(bot) => Ok(Some(bot.open_id)),
            Err(failure)
                if failure.is_final()
                    || matches!(failure, FeishuFailure::Unavailable(_))
                        && self.asked_in_vain.swap(true, Ordering::Relaxed) =>
            {
                tracing::warn!(?failure, "the id of the bot is unknown");
                Ok(None)
            }
            Err(failure) => Err(failure.into_error(1)),
        }
    }
}

/// Returns the abilities. The account's rate is that of 1,000 calls per minute of one API.
fn abilities() -> Abilities {
    Abilities {
        dialect: Dialect::FeishuCard,
        text: TEXT_LIMIT,
        live: Some(LivePacing {
            direct: Duration::from_millis(500),
            group: Duration::from_secs(1),
            keep_alive: None,
        }),
        rates: Rates {
            account_per_second: 16,
            chat_interval: Duration::from_millis(250),
            group_per_minute: None,
            counts_signs: true,
        },
        files: Some(FileLimits {
            receive: MAX_DOWNLOAD,
            send: MAX_FILE,
        }),
        buttons: true,
        typing: None,
        groups: GroupConversations::ReplyChain,
        needs_connection: false,
        redelivers: true,
    }
}

#[async_trait]
impl Platform for FeishuPlatform {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    async fn identify(&self) -> Result<Identity, PlatformError> {
        let mut warnings = Vec::new();
        let name = match self.ask_for_bot().await {
            Ok(bot) => bot.name,
            Err(failure) if failure.is_final() => {
                warnings.push(format!(
                    "the bot's own id is unknown ({}): enable the bot ability of the app and \
                     publish a version",
                    failure.into_error(1)
                ));
                self.api.app_id().to_owned()
            }
            Err(failure) => return Err(failure.into_error(1)),
        };
        warnings.extend(scopes::warnings(&self.api).await);
        if !self.kit.is_missing()
            && let Err(failure) = self.kit.create(&self.api, None, true).await
        {
            tracing::debug!(?failure, "streaming cards are not available");
        }
        if self.kit.is_missing() {
            warnings.push(
                "the scope cardkit:card:write is missing, so answers appear in patched cards: add \
                 it in the developer console and publish a version"
                    .to_owned(),
            );
        }
        Ok(Identity {
            account: self.api.app_id().to_owned(),
            name,
            warnings,
        })
    }

    async fn listen(
        &self,
        sink: &dyn EventSink,
        cursor: Option<String>,
        stop: CancellationToken,
    ) -> Result<(), PlatformError> {
        let bot = tokio::select! {
            bot = self.open_id() => bot?,
            () = stop.cancelled() => return Ok(()),
        };
        listen(&self.api, bot.as_deref(), sink, cursor, stop).await
    }

    async fn send(
        &self,
        message: &OutgoingMessage,
        file: Option<FileBody>,
        delivery: &mut Delivery,
    ) -> Result<Sent, PlatformError> {
        send(&self.api, &self.kit, message, file, delivery).await
    }

    fn prepares_live(&self) -> bool {
        !self.kit.is_missing()
    }

    async fn prepare_live(&self, reply: &mut LiveReply) -> Result<(), PlatformError> {
        prepare(&self.api, &self.kit, reply).await
    }

    fn finds_live(&self) -> bool {
        true
    }

    async fn update_live(
        &self,
        reply: &mut LiveReply,
        markdown: &str,
    ) -> Result<(), PlatformError> {
        update(&self.api, &self.kit, reply, markdown).await
    }

    async fn show(&self, target: &Target, receipt: Receipt) -> Result<(), PlatformError> {
        let emoji = match receipt {
            Receipt::Received => "OK",
            Receipt::Done => "DONE",
            Receipt::Working | Receipt::Failed => return Ok(()),
        };
        let Some(message) = target.reply_to.as_deref() else {
            return Ok(());
        };
        let path = ["im", "v1", "messages", message, "reactions"];
        let body = json!({"reaction_type": {"emoji_type": emoji}});
        let call = ApiCall::new(Method::POST, &path, ApiBody::Json(body));
        self.api
            .call(&call)
            .await
            .map(drop)
            .map_err(|failure| failure.into_error(1))
    }

    async fn download(&self, file: &IncomingFile, max: u64) -> Result<Bytes, PlatformError> {
        let reference = &file.reference;
        let (Some(message), Some(key), Some(kind)) = (
            id(&reference["message"]),
            id(&reference["key"]),
            id(&reference["type"]),
        ) else {
            return Err(PlatformError::Refused(
                "the reference of the file is invalid".to_owned(),
            ));
        };
        let path = ["im", "v1", "messages", message, "resources", key];
        let call = ApiCall::new(Method::GET, &path, ApiBody::Empty).with("type", kind);
        self.api
            .download(&call, max.min(MAX_DOWNLOAD))
            .await
            .map_err(|failure| failure.into_error(1))
    }
}

#[cfg(test)]
#[path = "adapter_tests.rs"]
mod tests;

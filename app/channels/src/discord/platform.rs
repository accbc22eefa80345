//! The adapter.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use harness::clock::Clock;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::answers::ApiError;
use super::bodies;
use super::commands;
use super::downloads;
use super::ids::id;
use super::listen::Listener;
use super::rest::Rest;
use super::rooms::Rooms;
use super::sending::{MAX_FILE, Sender};
use super::settings::Options;
use crate::markup::Dialect;
use crate::platform::{
    Abilities, CommandHelp, Delivery, EventSink, FileBody, FileLimits, GroupConversations,
    Identity, IncomingFile, LengthUnit, LivePacing, LiveReply, OutgoingMessage, Platform,
    PlatformError, Rates, Receipt, Sent, Target, TextLimit,
};

/// Flags of an application whose intent of message contents is switched on.
const CONTENT_FLAGS: u64 = (1 << 18) | (1 << 19);
/// Maximum length of a text, below Discord's 2,000.
const MAX_TEXT: usize = 1990;
/// Maximum size of a received file in bytes.
const MAX_RECEIVED: u64 = 100 * 1024 * 1024;

/// One bot on Discord.
#[derive(Debug)]
pub(super) struct DiscordPlatform {
    rest: Rest,
    options: Options,
    clock: Arc<dyn Clock>,
    listener: Listener,
    rooms: Rooms,
    abilities: Abilities,
}

impl DiscordPlatform {
    /// Creates the adapter.
    pub(super) fn new(rest: Rest, options: Options, clock: Arc<dyn Clock>) -> Self {
        Self {
            rest,
            options,
            clock,
            listener: Listener::default(),
            rooms: Rooms::default(),
            abilities: abilities(),
        }
    }

    fn sender(&self) -> Sender<'_> {
        Sender {
            rest: &self.rest,
            rooms: &self.rooms,
            now: self.clock.now(),
        }
    }
}

fn abilities() -> Abilities {
    let pacing = Duration::from_millis(1200);
    Abilities {
        dialect: Dialect::Discord,
        text: TextLimit {
            unit: LengthUnit::Utf16,
            max: MAX_TEXT,
        },
        live: Some(LivePacing {
            direct: pacing,
            group: pacing,
            keep_alive: None,
        }),
        rates: Rates {
            // Below the limit of 50, because calls without a message do not count.
            account_per_second: 45,
            chat_interval: Duration::from_millis(1100),
            group_per_minute: None,
            counts_signs: true,
        },
        files: Some(FileLimits {
            receive: MAX_RECEIVED,
            send: MAX_FILE,
        }),
        buttons: true,
        typing: Some(Duration::from_secs(8)),
        groups: GroupConversations::Chat,
        needs_connection: false,
        redelivers: true,
    }
}

#[async_trait]
impl Platform for DiscordPlatform {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    async fn identify(&self) -> Result<Identity, PlatformError> {
        let user = self.rest.me().await?;
        let account = id(&user["id"]).ok_or_else(|| {
            PlatformError::Unavailable("the answer of Discord contains no user id".to_owned())
        })?;
        let warnings = match self.rest.application().await {
            Ok(application) => warnings(&application),
            Err(error) => {
                let error = PlatformError::from(error);
                tracing::debug!(%error, "the application cannot be read");
                Vec::new()
            }
        };
        Ok(Identity {
            account: account.to_owned(),
            name: user["username"].as_str().unwrap_or(account).to_owned(),
            warnings,
        })
    }

    async fn register_commands(&self, commands: &[CommandHelp]) -> Result<(), PlatformError> {
        let application = self.rest.application().await?;
        match id(&application["id"]) {
            Some(id) => Ok(self.rest.register(id, commands::list(commands)).await?),
            None => Err(PlatformError::Unavailable(
                "the answer of Discord contains no application id".to_owned(),
            )),
        }
    }

    async fn listen(
        &self,
        sink: &dyn EventSink,
        cursor: Option<String>,
        stop: CancellationToken,
    ) -> Result<(), PlatformError> {
        self.listener
            .run(&self.rest, &self.options, sink, cursor, &stop)
            .await
    }

    async fn send(
        &self,
        message: &OutgoingMessage,
        file: Option<FileBody>,
        delivery: &mut Delivery,
    ) -> Result<Sent, PlatformError> {
        self.sender().send(message, file, delivery).await
    }

    fn finds_live(&self) -> bool {
        true
    }

    async fn update_live(
        &self,
        reply: &mut LiveReply,
        markdown: &str,
    ) -> Result<(), PlatformError> {
        self.sender()
            .update_live(reply, markdown, self.abilities.text)
            .await
    }

    async fn show(&self, target: &Target, receipt: Receipt) -> Result<(), PlatformError> {
        let emoji = match receipt {
            Receipt::Received => return Ok(()),
            Receipt::Working => {
                let room = self.rooms.find(&self.rest, target).await?;
                return Ok(self.rest.typing(&room.channel).await?);
            }
            Receipt::Done => "✅",
            Receipt::Failed => "⚠️",
        };
        let context = &target.context;
        match (id(&context["channel"]), id(&context["message"])) {
            (Some(channel), Some(message)) => Ok(self.rest.react(channel, message, emoji).await?),
            _ => Ok(()),
        }
    }

    async fn confirm_press(&self, target: &Target, text: &str) -> Result<(), PlatformError> {
        let context = &target.context;
        let (Some(interaction), Some(token)) = (
            id(&context["interaction"]),
            context["token"].as_str().filter(|token| !token.is_empty()),
        ) else {
            return Ok(());
        };
        let body = bodies::press_answer(text);
        match self.rest.answer_interaction(interaction, token, body).await {
            // A repeated confirmation finds the press confirmed.
            Err(ApiError::Code { code: 40060, .. }) => Ok(()),
            result => Ok(result?),
        }
    }

    async fn download(&self, file: &IncomingFile, max: u64) -> Result<Bytes, PlatformError> {
        downloads::download(&self.rest, file, max).await
    }
}

fn warnings(application: &Value) -> Vec<String> {
    match application["flags"].as_u64() {
        Some(flags) if flags & CONTENT_FLAGS == 0 => vec![
            "the intent of message contents is off: switch on Message Content Intent at \
             https://discord.com/developers/applications, your application, Bot, Privileged \
             Gateway Intents"
                .to_owned(),
        ],
        _ => Vec::new(),
    }
}

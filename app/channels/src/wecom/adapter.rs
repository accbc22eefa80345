//! The adapter.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use harness::clock::Clock;
use harness::net::GuardedClient;
use parking_lot::Mutex;
use reqwest::Client;
use tokio_util::sync::CancellationToken;

use super::download;
use super::line::Line;
use super::listen::{self, Account, Wiring};
use crate::markup::Dialect;
use crate::platform::{
    Abilities, Content, Delivery, Event, EventSink, FileBody, FileLimits, GroupConversations,
    Identity, IncomingFile, LengthUnit, LivePacing, LiveReply, OutgoingMessage, Platform,
    PlatformError, Rates, Sent, TextLimit,
};

/// Maximum length of a text in bytes.
const MAX_TEXT_BYTES: usize = 20_480;
/// Maximum size of a file in bytes.
const MAX_FILE_BYTES: u64 = 20 * 1024 * 1024;

/// One bot on WeCom.
#[derive(Debug)]
pub(super) struct WeComPlatform {
    account: Account,
    files: GuardedClient,
    http: Client,
    clock: Arc<dyn Clock>,
    abilities: Abilities,
    backlog: Mutex<Vec<Event>>,
    refusals: AtomicU32,
    /// Access to the live connection.
    pub(super) line: Line,
}

impl WeComPlatform {
    /// Creates the adapter.
    pub(super) fn new(
        account: Account,
        files: GuardedClient,
        http: Client,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            account,
            files,
            http,
            clock,
            abilities: abilities(),
            backlog: Mutex::default(),
            refusals: AtomicU32::new(0),
            line: Line::default(),
        }
    }

    /// Returns the time in milliseconds.
    pub(super) fn now_ms(&self) -> i64 {
        self.clock.now().timestamp_millis()
    }

    /// Returns the limit of a text.
    pub(super) fn limit(&self) -> TextLimit {
        self.abilities.text
    }

    /// Returns the form of texts.
    pub(super) fn dialect(&self) -> Dialect {
        self.abilities.dialect
    }
}

/// Returns the abilities. The platform allows 30 messages per minute in a conversation.
fn abilities() -> Abilities {
    Abilities {
        dialect: Dialect::WeCom,
        text: TextLimit {
            unit: LengthUnit::Utf8Bytes,
            max: MAX_TEXT_BYTES,
        },
        live: Some(LivePacing {
            direct: Duration::from_millis(2_500),
            group: Duration::from_millis(2_500),
            keep_alive: Some(Duration::from_secs(30)),
        }),
        rates: Rates {
            account_per_second: 20,
            chat_interval: Duration::from_secs(1),
            group_per_minute: Some(30),
            counts_signs: false,
        },
        files: Some(FileLimits {
            receive: MAX_FILE_BYTES,
            send: MAX_FILE_BYTES,
        }),
        buttons: false,
        typing: None,
        groups: GroupConversations::Chat,
        needs_connection: true,
        redelivers: false,
    }
}

#[async_trait]
impl Platform for WeComPlatform {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    /// Returns the configured bot. The platform offers no call that checks credentials without
    /// taking over the connection.
    async fn identify(&self) -> Result<Identity, PlatformError> {
        Ok(Identity {
            account: self.account.bot_id.clone(),
            name: self.account.bot_id.clone(),
            warnings: Vec::new(),
        })
    }

    async fn listen(
        &self,
        sink: &dyn EventSink,
        _cursor: Option<String>,
        stop: CancellationToken,
    ) -> Result<(), PlatformError> {
        let wiring = Wiring {
            account: &self.account,
            http: &self.http,
            clock: &self.clock,
            line: &self.line,
            backlog: &self.backlog,
            refusals: &self.refusals,
        };
        listen::listen(wiring, sink, stop).await
    }

    async fn send(
        &self,
        message: &OutgoingMessage,
        file: Option<FileBody>,
        delivery: &mut Delivery,
    ) -> Result<Sent, PlatformError> {
        match &message.content {
            Content::Text(text) | Content::Buttons { text, .. } => {
                self.deliver_text(message, &text.markup, delivery).await
            }
            Content::File { .. } => match file {
                Some(file) => self.deliver_file(&message.target, &file, delivery).await,
                None => Err(PlatformError::Refused("the file is missing".to_owned())),
            },
            Content::TextFile { name, text } => {
                let file = file.unwrap_or_else(|| FileBody {
                    name: name.clone(),
                    media_type: "text/plain".to_owned(),
                    bytes: text.clone().into_bytes().into(),
                });
                self.deliver_file(&message.target, &file, delivery).await
            }
        }
    }

    async fn update_live(
        &self,
        reply: &mut LiveReply,
        markdown: &str,
    ) -> Result<(), PlatformError> {
        self.update_stream(reply, markdown).await
    }

    async fn download(&self, file: &IncomingFile, max: u64) -> Result<Bytes, PlatformError> {
        download::download(&self.files, file, max.min(MAX_FILE_BYTES)).await
    }
}

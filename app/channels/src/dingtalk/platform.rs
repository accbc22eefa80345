//! The adapter.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::api::Api;
use super::{downloads, listen, sending};
use crate::markup::Dialect;
use crate::platform::{
    Abilities, Delivery, EventSink, FileBody, FileLimits, GroupConversations, Identity,
    IncomingFile, LengthUnit, LivePacing, LiveReply, OutgoingMessage, Platform, PlatformError,
    Rates, Sent, TextLimit,
};

/// Maximum length of a text within the parameters of a message.
const MAX_TEXT: usize = 12_000;
/// Maximum size of a received file in bytes.
const MAX_RECEIVED: u64 = 50 * 1024 * 1024;

/// One robot on DingTalk.
#[derive(Debug)]
pub(super) struct DingTalkPlatform {
    api: Api,
    abilities: Abilities,
}

impl DingTalkPlatform {
    /// Creates the adapter.
    pub(super) fn new(api: Api) -> Self {
        let streams = api.options().card_template.is_some();
        Self {
            api,
            abilities: abilities(streams),
        }
    }
}

fn abilities(streams: bool) -> Abilities {
    Abilities {
        dialect: Dialect::DingTalk,
        text: TextLimit {
            unit: LengthUnit::JsonBytes,
            max: MAX_TEXT,
        },
        live: streams.then_some(LivePacing {
            direct: Duration::from_millis(1200),
            group: Duration::from_secs(4),
            keep_alive: None,
        }),
        rates: Rates {
            account_per_second: 20,
            chat_interval: Duration::from_millis(500),
            group_per_minute: Some(18),
            counts_signs: false,
        },
        files: Some(FileLimits {
            receive: MAX_RECEIVED,
            send: sending::MAX_FILE,
        }),
        buttons: false,
        typing: None,
        groups: GroupConversations::Chat,
        needs_connection: false,
        redelivers: true,
    }
}

#[async_trait]
impl Platform for DingTalkPlatform {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    /// Checks the credentials; the app is known by its client id.
    async fn identify(&self) -> Result<Identity, PlatformError> {
        self.api.token().await?;
        let account = self.api.options().client_id.clone();
        Ok(Identity {
            name: account.clone(),
            account,
            warnings: Vec::new(),
        })
    }

    async fn listen(
        &self,
        sink: &dyn EventSink,
        _cursor: Option<String>,
        stop: CancellationToken,
    ) -> Result<(), PlatformError> {
        listen::run(&self.api, sink, &stop).await
    }

    async fn send(
        &self,
        message: &OutgoingMessage,
        file: Option<FileBody>,
        delivery: &mut Delivery,
    ) -> Result<Sent, PlatformError> {
        sending::send(&self.api, message, file, delivery).await
    }

    fn finds_live(&self) -> bool {
        true
    }

    async fn update_live(
        &self,
        reply: &mut LiveReply,
        markdown: &str,
    ) -> Result<(), PlatformError> {
        sending::update_live(&self.api, reply, markdown, self.abilities.text).await
    }

    async fn download(&self, file: &IncomingFile, max: u64) -> Result<Bytes, PlatformError> {
        downloads::download(&self.api, file, max.min(MAX_RECEIVED)).await
    }
}

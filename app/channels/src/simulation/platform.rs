//! The platform as one node sees it: calls are refused, and their answers are lost.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use harness::runtime::process::Process;
use tokio_util::sync::CancellationToken;

use super::world::{SendEffect, World};
use crate::platform::{
    Abilities, Content, CredentialField, Delivery, Event, EventSink, FileBody, Identity,
    IncomingFile, LiveReply, OutgoingMessage, Platform, PlatformContext, PlatformError,
    PlatformFactory, Sent, Settings, SettingsError, SinkError, Target,
};

/// Connection of one process to the platform.
#[derive(Debug, Clone)]
pub(super) struct SimulatedPlatform {
    pub(super) world: Arc<World>,
    pub(super) node: String,
    pub(super) process: Process,
}

impl SimulatedPlatform {
    /// Lets time pass before a call, and refuses it at times.
    async fn begin(&self) -> Result<(), PlatformError> {
        let freezes = self.process.freeze_count();
        self.world.pass_time().await;
        if self.process.freeze_count() != freezes {
            // The platform closes the connections of a process that does not answer.
            return Err(PlatformError::Unavailable("closed".to_owned()));
        }
        if !self.world.fails() {
            return Ok(());
        }
        if self.world.chance.of_thousand(300) {
            return Err(PlatformError::RateLimited {
                retry_after: self.world.chance.millis(500, 5_000),
                account: self.world.chance.of_thousand(300),
            });
        }
        Err(PlatformError::Unavailable("no connection".to_owned()))
    }

    /// Lets time pass after a call, and loses its answer at times.
    async fn end(&self) -> Result<(), PlatformError> {
        self.world.pass_time().await;
        if self.world.fails() {
            return Err(PlatformError::Unavailable("the answer is lost".to_owned()));
        }
        Ok(())
    }

    /// Reports a call of a node that no longer serves the account.
    fn check_holder(&self, call: &str) {
        let newest = self.world.observed.lock().newest.clone();
        let is_holder = newest.is_some_and(|claim| claim.node == self.node);
        if !is_holder {
            let text = format!("{} calls {call} and does not serve the account", self.node);
            self.world.violation(text);
        }
    }
}

#[async_trait]
impl Platform for SimulatedPlatform {
    fn abilities(&self) -> &Abilities {
        self.world.platform.abilities()
    }

    async fn identify(&self) -> Result<Identity, PlatformError> {
        self.begin().await?;
        self.world.platform.identify().await
    }

    async fn listen(
        &self,
        sink: &dyn EventSink,
        cursor: Option<String>,
        stop: CancellationToken,
    ) -> Result<(), PlatformError> {
        self.begin().await?;
        let sink = LossySink {
            sink,
            world: &self.world,
        };
        self.world.platform.listen(&sink, cursor, stop).await
    }

    async fn send(
        &self,
        message: &OutgoingMessage,
        file: Option<FileBody>,
        delivery: &mut Delivery,
    ) -> Result<Sent, PlatformError> {
        self.check_holder("send");
        self.begin().await?;
        let effect = SendEffect {
            delivery: delivery.id,
            text: match &message.content {
                Content::Text(part) => part.plain.clone(),
                other => format!("{other:?}"),
            },
            process: self.process.clone(),
            freezes: self.process.freeze_count(),
            is_lost: false,
        };
        let sent = self.world.platform.send(message, file, delivery).await?;
        self.world.log(format_args!(
            "{} sends {:?}, attempt {}",
            self.node, effect.text, delivery.attempt
        ));
        let number = {
            let sends = &mut self.world.observed.lock().sends;
            sends.push(effect);
            sends.len() - 1
        };
        if let Err(error) = self.end().await {
            self.world.observed.lock().sends[number].is_lost = true;
            return Err(error);
        }
        Ok(sent)
    }

    fn finds_live(&self) -> bool {
        self.world.platform.finds_live()
    }

    async fn update_live(&self, reply: &mut LiveReply, text: &str) -> Result<(), PlatformError> {
        self.check_holder("update_live");
        self.begin().await?;
        let mut updated = reply.clone();
        self.world.platform.update_live(&mut updated, text).await?;
        self.world.log(format_args!("{} shows {text:?}", self.node));
        self.end().await?;
        *reply = updated;
        Ok(())
    }

    async fn confirm_press(&self, target: &Target, text: &str) -> Result<(), PlatformError> {
        self.world.platform.confirm_press(target, text).await
    }

    async fn download(&self, file: &IncomingFile, max: u64) -> Result<Bytes, PlatformError> {
        self.world.platform.download(file, max).await
    }
}

/// Sink whose acknowledgements do not always reach the platform.
struct LossySink<'a> {
    sink: &'a dyn EventSink,
    world: &'a World,
}

#[async_trait]
impl EventSink for LossySink<'_> {
    fn connected(&self) {
        self.sink.connected();
    }

    async fn accept(&self, events: Vec<Event>, cursor: Option<String>) -> Result<(), SinkError> {
        self.world.pass_time().await;
        self.sink.accept(events, cursor).await?;
        self.world.pass_time().await;
        if self.world.fails() {
            return Err(SinkError::Unavailable);
        }
        Ok(())
    }
}

/// Factory of the connection of one process.
#[derive(Debug)]
pub(super) struct SimulatedFactory(pub(super) SimulatedPlatform);

impl PlatformFactory for SimulatedFactory {
    fn provider(&self) -> &'static str {
        "memory"
    }

    fn display_name(&self) -> &'static str {
        "Memory"
    }

    fn fields(&self) -> &'static [CredentialField] {
        &[]
    }

    fn build(
        &self,
        _settings: &Settings,
        _context: &PlatformContext,
    ) -> Result<Arc<dyn Platform>, SettingsError> {
        Ok(Arc::new(self.0.clone()))
    }
}

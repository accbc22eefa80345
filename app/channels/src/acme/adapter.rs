//! Adapter of the documentation, as it is printed there.

use std::{sync::Arc, time::Duration};
use async_trait::async_trait;
use deerflow_channels::{markup::Dialect, platform::*};
use serde_json::{Value, json};
use tokio_util::{bytes::Bytes, sync::CancellationToken};

#[derive(Debug)]
struct Acme {
    http: reqwest::Client,
    base: String,
    abilities: Abilities,
}

impl Acme {
    async fn call(&self, request: reqwest::RequestBuilder) -> Result<Value, PlatformError> {
        let lost = |error: reqwest::Error| PlatformError::Unavailable(error.without_url().to_string());
        let answer = request.send().await.map_err(lost)?;
        match answer.status().as_u16() {
            200 => answer.json().await.map_err(lost),
            401 => Err(PlatformError::Rejected("acme refused the bot".to_owned())),
            429 => Err(PlatformError::RateLimited { retry_after: Duration::from_secs(5), account: false }),
            status @ 400..=499 => Err(PlatformError::Refused(format!("acme refused with {status}"))),
            status => Err(PlatformError::Unavailable(format!("acme failed with {status}"))),
        }
    }
}

/// Decodes one event. Everything in it is untrusted; what is not understood is skipped.
fn event(raw: &Value) -> Option<Event> {
    let text = |key: &str| raw[key].as_str().map(str::to_owned);
    Some(Event {
        id: text("id")?,
        workspace: String::new(),
        chat: Chat { id: text("chat")?, kind: ChatKind::Direct, parent: None },
        sender: Sender { id: text("user")?, name: None },
        at: Default::default(),
        body: EventBody::Message(ChatMessage { text: text("text")?, addressed: true, ..Default::default() }),
        context: Value::Null,
    })
}

#[async_trait]
impl Platform for Acme {
    fn abilities(&self) -> &Abilities { &self.abilities }
    async fn identify(&self) -> Result<Identity, PlatformError> {
        let me = self.call(self.http.get(format!("{}/me", self.base))).await?;
        let account = me["id"].as_str().unwrap_or("acme").to_owned();
        Ok(Identity { name: account.clone(), account, warnings: Vec::new() })
    }

    async fn listen(
        &self, sink: &dyn EventSink, cursor: Option<String>, stop: CancellationToken,
    ) -> Result<(), PlatformError> {
        let mut after = cursor.unwrap_or_else(|| "0".to_owned());
        loop {
            let request = self.http.get(format!("{}/events", self.base)).query(&[("after", &after)]);
            let batch = tokio::select! {
                batch = self.call(request) => batch?,
                () = stop.cancelled() => return Ok(()),
            };
            sink.connected();
            let next = batch["next"].to_string(); // a number
            let events = batch["events"].as_array().into_iter().flatten().filter_map(event).collect();
            // The cursor is stored with the events. The next request acknowledges them.
            match sink.accept(events, Some(next.clone())).await {
                Ok(()) => after = next,
                Err(SinkError::Fenced) => return Err(SinkError::Fenced.into()),
                Err(_) => tokio::time::sleep(Duration::from_secs(1)).await,
            }
        }
    }

    async fn send(
        &self, message: &OutgoingMessage, _: Option<FileBody>, delivery: &mut Delivery,
    ) -> Result<Sent, PlatformError> {
        let (Content::Text(part) | Content::Buttons { text: part, .. }) = &message.content else {
            return Err(PlatformError::Refused("acme has no files".to_owned()));
        };
        // The id is the same in every attempt, so a retry sends nothing twice.
        let body = json!({"chat": message.target.chat.id, "key": delivery.id, "text": part.markup});
        let sent = self.call(self.http.post(format!("{}/messages", self.base)).json(&body)).await?;
        Ok(Sent { ids: sent["id"].as_str().map(str::to_owned).into_iter().collect() })
    }

    async fn update_live(&self, _: &mut LiveReply, _: &str) -> Result<(), PlatformError> {
        Ok(()) // Not called: `abilities.live` is `None`.
    }
    async fn download(&self, _: &IncomingFile, _: u64) -> Result<Bytes, PlatformError> {
        Err(PlatformError::Refused("acme has no files".to_owned()))
    }
}

#[derive(Debug)]
pub struct AcmeFactory;

impl PlatformFactory for AcmeFactory {
    fn provider(&self) -> &'static str { "acme" }
    fn display_name(&self) -> &'static str { "Acme" }
    fn fields(&self) -> &'static [CredentialField] { &[] }
    fn build(&self, settings: &Settings, context: &PlatformContext) -> Result<Arc<dyn Platform>, SettingsError> {
        let base = settings.base("acme", "api_base", "https://chat.acme.example")?;
        let abilities = Abilities {
            dialect: Dialect::Plain,
            text: TextLimit { unit: LengthUnit::Utf16, max: 2_000 },
            live: None,
            rates: Rates {
                account_per_second: 10,
                chat_interval: Duration::from_secs(1),
                group_per_minute: None,
                counts_signs: false,
            },
            files: None,
            buttons: false,
            typing: None,
            groups: GroupConversations::ReplyChain,
            needs_connection: false,
            redelivers: true,
        };
        let (http, base) = (context.http.clone(), base.as_str().trim_end_matches('/').to_owned());
        Ok(Arc::new(Acme { http, base, abilities }))
    }
}

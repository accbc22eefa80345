//! Actions of persons and of the platform that tests cause.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::deliveries::Out;
use super::shared::DingTalkShared;
use super::written::PersonMessage;

/// Actions of persons and of the platform. Clones share the platform.
#[derive(Debug, Clone)]
pub struct DingTalkControls(pub(super) Arc<DingTalkShared>);

impl DingTalkControls {
    /// Writes as a person and returns the id of the message.
    pub fn write(&self, message: &PersonMessage) -> String {
        let id = format!("msg{}==", self.0.number());
        let code = format!("code-{}", self.0.number());
        if let Some(base64) = message.file() {
            let bytes = STANDARD.decode(base64).unwrap_or_default();
            self.0.files.lock().insert(code.clone(), bytes);
        }
        self.0.deliveries.lock().add(&message.data(&id, &code));
        id
    }

    /// Delivers any data as a message.
    pub fn deliver(&self, data: &Value) {
        self.0.deliveries.lock().add(data);
    }

    /// Delivers the last acknowledged message again, with a new frame id.
    pub fn repeat_last(&self) {
        self.0.deliveries.lock().repeat_last();
    }

    /// Announces the end of all connections.
    pub fn disconnect(&self) {
        let frame = || {
            Out::Frame(json!({
                "specVersion": "1.0", "type": "SYSTEM",
                "headers": {
                    "topic": "disconnect", "messageId": "d-1", "contentType": "application/json",
                },
                "data": "{\"reason\":\"persistent connection ends\"}",
            }))
        };
        self.0.deliveries.lock().command(frame);
    }

    /// Closes all connections with a code.
    pub fn close(&self, code: u16) {
        self.0.deliveries.lock().command(|| Out::Close(code));
    }

    /// Ends all connections without close frames.
    pub fn drop_connections(&self) {
        self.0.deliveries.lock().command(|| Out::Drop);
    }

    /// Stops reading and writing on all connections, which stay open.
    pub fn freeze(&self) {
        self.0.deliveries.lock().command(|| Out::Freeze);
    }

    /// Sends a text as it is to all connections.
    pub fn raw(&self, text: &str) {
        let text = || Out::Raw(text.to_owned());
        self.0.deliveries.lock().command(text);
    }

    /// Makes all tokens invalid.
    pub fn expire_tokens(&self) {
        self.0.tokens.lock().clear();
    }

    /// Removes the cards in progress.
    pub fn expire_cards(&self) {
        self.0.cards.lock().retain(|_, card| card.is_final);
    }

    /// Returns the number of open connections.
    pub fn connections(&self) -> usize {
        self.0.deliveries.lock().open()
    }

    /// Returns the ids of acknowledged messages in order.
    pub fn acknowledged(&self) -> Vec<String> {
        self.0.deliveries.lock().acknowledged()
    }

    /// Returns the number of messages without acknowledgement.
    pub fn waiting(&self) -> usize {
        self.0.deliveries.lock().waiting()
    }

    /// Returns the messages of the robot: receiver, key and parameters.
    pub fn sent(&self) -> Vec<(String, String, Value)> {
        self.0
            .sent
            .lock()
            .iter()
            .map(|message| {
                (
                    message.to.clone(),
                    message.key.clone(),
                    message.parameters.clone(),
                )
            })
            .collect()
    }

    /// Returns the texts of the robot's Markdown messages to a receiver.
    pub fn texts(&self, to: &str) -> Vec<String> {
        self.sent()
            .into_iter()
            .filter(|(receiver, key, _)| receiver == to && key == "sampleMarkdown")
            .filter_map(|(_, _, parameters)| parameters["text"].as_str().map(ToOwned::to_owned))
            .collect()
    }

    /// Returns the cards: space, text, and `true` if it is complete.
    pub fn cards(&self) -> Vec<(String, String, bool)> {
        let cards = self.0.cards.lock();
        cards
            .values()
            .map(|card| (card.space.clone(), card.content.clone(), card.is_final))
            .collect()
    }

    /// Returns the bytes of an uploaded or received file.
    pub fn file(&self, id: &str) -> Option<Vec<u8>> {
        self.0.files.lock().get(id).cloned()
    }
}

//! State of the fake: chats, messages, cards, files and tokens.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};

use super::limits::FeishuLimits;
use super::options::FeishuOptions;

/// Time for which an idempotency key is remembered.
const UUID_LIFETIME: Duration = Duration::from_secs(3600);

/// Message in a chat.
#[derive(Debug, Clone, Serialize)]
pub struct FeishuMessage {
    /// Id.
    pub message_id: String,
    /// Chat.
    pub chat_id: String,
    /// Open id of a person, or the id of the app.
    pub sender: String,
    /// `true` if the bot sent it.
    pub by_bot: bool,
    /// Kind.
    pub msg_type: String,
    /// Content in its current form.
    pub content: String,
    /// Message that it replies to.
    pub parent_id: Option<String>,
    /// First message of its chain.
    pub root_id: Option<String>,
    /// Topic.
    pub thread_id: Option<String>,
    /// Milliseconds since the epoch.
    pub create_time: i64,
    /// Mentions as in the event.
    pub mentions: Vec<Value>,
    /// Reactions of the bot.
    pub reactions: Vec<String>,
    /// Number of PATCH calls.
    pub edits: usize,
    /// Idempotency key.
    pub uuid: Option<String>,
    /// Code with which calls for this message are refused.
    pub gone: Option<i64>,
}

/// Card of CardKit.
#[derive(Debug, Clone, Serialize)]
pub struct FeishuCard {
    /// Id.
    pub card_id: String,
    /// JSON with the current contents.
    pub data: Value,
    /// Highest sequence so far.
    pub sequence: i64,
    /// `true` while streaming mode is on.
    pub streaming: bool,
    /// Message that shows it.
    pub message_id: Option<String>,
    /// Contents that were shown, in order.
    pub updates: Vec<String>,
    #[serde(skip)]
    pub(super) streaming_since: Instant,
}

/// Uploaded file, or file of a received message.
#[derive(Debug, Clone, Serialize)]
pub struct FeishuFile {
    /// Key.
    pub key: String,
    /// `image`, or the type of the file.
    pub file_type: String,
    /// Name.
    pub name: String,
    /// Bytes.
    #[serde(skip)]
    pub bytes: bytes::Bytes,
    /// Message that a person sent with it.
    pub message_id: Option<String>,
}

/// State behind the lock of the fake.
#[derive(Debug)]
pub(super) struct FeishuWorld {
    pub(super) options: FeishuOptions,
    /// Chats with `true` for direct ones.
    pub(super) chats: BTreeMap<String, bool>,
    /// Chats that the bot was removed from.
    pub(super) left: BTreeSet<String>,
    pub(super) messages: BTreeMap<String, FeishuMessage>,
    pub(super) order: Vec<String>,
    pub(super) cards: BTreeMap<String, FeishuCard>,
    pub(super) files: BTreeMap<String, FeishuFile>,
    pub(super) uuids: HashMap<String, (String, Instant)>,
    pub(super) tokens: HashMap<String, Instant>,
    pub(super) missing_scopes: BTreeSet<String>,
    /// Texts within content that is refused, and the code.
    pub(super) refused_content: Vec<(String, i64)>,
    pub(super) limits: FeishuLimits,
    next: u64,
}

impl FeishuWorld {
    pub(super) fn new(options: FeishuOptions) -> Self {
        Self {
            limits: FeishuLimits::new(options.rate_limits),
            options,
            chats: BTreeMap::new(),
            left: BTreeSet::new(),
            messages: BTreeMap::new(),
            order: Vec::new(),
            cards: BTreeMap::new(),
            files: BTreeMap::new(),
            uuids: HashMap::new(),
            tokens: HashMap::new(),
            missing_scopes: BTreeSet::new(),
            refused_content: Vec::new(),
            next: 0,
        }
    }

    /// Returns a new number.
    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Stores a message.
    pub(super) fn insert(&mut self, message: FeishuMessage) {
        self.order.push(message.message_id.clone());
        self.messages.insert(message.message_id.clone(), message);
    }

    /// Returns the message of an earlier call with the same idempotency key.
    pub(super) fn repeated(&self, uuid: Option<&str>, now: Instant) -> Option<FeishuMessage> {
        let (id, at) = self.uuids.get(uuid?)?;
        (now.duration_since(*at) < UUID_LIFETIME)
            .then(|| self.messages.get(id).cloned())
            .flatten()
    }

    /// Issues a token.
    pub(super) fn issue_token(&mut self, now: Instant) -> Value {
        let number = self.number();
        let token = format!("t-{number}");
        let lifetime = Duration::from_secs(self.options.token_seconds);
        self.tokens.insert(token.clone(), now + lifetime);
        json!({"code": 0, "msg": "ok", "tenant_access_token": token, "expire": self.options.token_seconds})
    }

    /// Returns the text that a person sees in a message.
    pub(super) fn visible(&self, message_id: &str) -> String {
        let Some(message) = self.messages.get(message_id) else {
            return String::new();
        };
        let content: Value = serde_json::from_str(&message.content).unwrap_or_default();
        match message.msg_type.as_str() {
            "text" => content["text"].as_str().unwrap_or_default().to_owned(),
            "interactive" if content["type"] == "card" => {
                let id = content["data"]["card_id"].as_str().unwrap_or_default();
                self.cards
                    .get(id)
                    .map(|card| text_of_card(&card.data))
                    .unwrap_or_default()
            }
            "interactive" => text_of_card(&content),
            _ => message.content.clone(),
        }
    }
}

/// Returns the elements of a card in either schema.
pub(super) fn elements_of(card: &Value) -> &[Value] {
    let elements = if card["schema"] == "2.0" {
        &card["body"]["elements"]
    } else {
        &card["elements"]
    };
    elements.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns the texts of a card's elements.
fn text_of_card(card: &Value) -> String {
    let texts: Vec<&str> = elements_of(card)
        .iter()
        .filter_map(|element| {
            element["content"]
                .as_str()
                .or_else(|| element["text"]["content"].as_str())
        })
        .collect();
    texts.join("\n")
}

/// Returns the time in milliseconds since the epoch.
pub(super) fn now_ms() -> i64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "a fake is a program of its own, and its messages have real times"
    )]
    let now = chrono::Utc::now();
    now.timestamp_millis()
}

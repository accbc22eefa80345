//! Messages that persons write.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::shared::{CLIENT_ID, GROUP, STAFF};

/// Content of a message.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WrittenBody {
    /// Text.
    Text(String),
    /// Picture with base64 bytes.
    Picture(String),
    /// File with its name and base64 bytes.
    File {
        /// Name.
        name: String,
        /// Bytes.
        base64: String,
    },
    /// Text with a picture of base64 bytes.
    RichText {
        /// Text.
        text: String,
        /// Bytes.
        base64: String,
    },
    /// Data of the frame as it is, given as the type and additional fields.
    Raw {
        /// Type.
        msgtype: String,
        /// Fields.
        fields: Value,
    },
}

/// Message of a person.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub struct PersonMessage {
    /// Staff id of the author.
    pub staff: String,
    /// Group; `None` for a direct chat.
    pub group: Option<String>,
    /// Content.
    pub body: WrittenBody,
}

impl Default for PersonMessage {
    fn default() -> Self {
        Self {
            staff: STAFF.to_owned(),
            group: None,
            body: WrittenBody::Text(String::new()),
        }
    }
}

impl PersonMessage {
    /// Creates a text in the direct chat.
    pub fn direct(text: impl Into<String>) -> Self {
        Self {
            body: WrittenBody::Text(text.into()),
            ..Self::default()
        }
    }

    /// Creates a text in the group.
    pub fn group(text: impl Into<String>) -> Self {
        Self {
            group: Some(GROUP.to_owned()),
            ..Self::direct(text)
        }
    }

    /// Returns the bytes of its file in base64.
    pub(super) fn file(&self) -> Option<&str> {
        match &self.body {
            WrittenBody::Picture(base64)
            | WrittenBody::File { base64, .. }
            | WrittenBody::RichText { base64, .. } => Some(base64),
            WrittenBody::Text(_) | WrittenBody::Raw { .. } => None,
        }
    }

    /// Builds the data of the frame.
    pub(super) fn data(&self, id: &str, code: &str) -> Value {
        let is_group = self.group.is_some();
        let direct = format!("cid-{}", self.staff);
        let mut data = json!({
            "conversationId": self.group.clone().unwrap_or(direct),
            "atUsers": [{"dingtalkId": "$:bot"}], "chatbotCorpId": "corp",
            "chatbotUserId": "$:bot", "msgId": id, "senderNick": "Ann", "isAdmin": true,
            "senderStaffId": self.staff, "sessionWebhookExpiredTime": 1_763_875_400_000_u64,
            "createAt": 1_763_870_000_000_u64, "senderCorpId": "corp",
            "conversationType": if is_group { "2" } else { "1" },
            "senderId": format!("$:{}", self.staff), "robotCode": CLIENT_ID,
            "sessionWebhook": "https://oapi.dingtalk.com/robot/sendBySession?session=s",
        });
        if is_group {
            data["isInAtList"] = json!(true);
            data["conversationTitle"] = json!("group");
        }
        let (kind, key, content) = match &self.body {
            WrittenBody::Text(text) => ("text", "text", json!({"content": text})),
            WrittenBody::Picture(_) => ("picture", "content", json!({"downloadCode": code})),
            WrittenBody::File { name, .. } => (
                "file",
                "content",
                json!({"downloadCode": code, "fileName": name, "spaceId": "1", "fileId": "2"}),
            ),
            WrittenBody::RichText { text, .. } => (
                "richText",
                "content",
                json!({"richText": [{"text": text}, {"type": "picture", "downloadCode": code}]}),
            ),
            WrittenBody::Raw { msgtype, fields } => (msgtype.as_str(), "content", fields.clone()),
        };
        data["msgtype"] = json!(kind);
        data[key] = content;
        data
    }
}

//! Routes of the REST API.

use http::Method;

/// Call of the REST API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route {
    Gateway,
    GatewayBot,
    Me,
    Application,
    Commands,
    Channel(u64),
    CreateMessage(u64),
    ListMessages(u64),
    EditMessage(u64, u64),
    DeleteMessage(u64, u64),
    Typing(u64),
    CreateThread(u64, u64),
    React(u64, u64, String),
    Callback(u64, String),
    Followup(String),
    RefreshUrls,
}

impl Route {
    /// Finds the route of a path below the base.
    pub(super) fn find(method: &Method, path: &str) -> Option<Self> {
        let decoded = percent_encoding::percent_decode_str(path)
            .decode_utf8()
            .ok()?;
        let segments: Vec<&str> = decoded.trim_matches('/').split('/').collect();
        let id = |text: &str| text.parse::<u64>().ok();
        Some(match (method.as_str(), segments.as_slice()) {
            ("GET", ["gateway"]) => Self::Gateway,
            ("GET", ["gateway", "bot"]) => Self::GatewayBot,
            ("GET", ["users", "@me"]) => Self::Me,
            ("GET", ["oauth2", "applications", "@me"]) => Self::Application,
            ("PUT", ["applications", _, "commands"]) => Self::Commands,
            ("GET", ["channels", channel]) => Self::Channel(id(channel)?),
            ("POST", ["channels", channel, "messages"]) => Self::CreateMessage(id(channel)?),
            ("GET", ["channels", channel, "messages"]) => Self::ListMessages(id(channel)?),
            ("PATCH", ["channels", channel, "messages", message]) => {
                Self::EditMessage(id(channel)?, id(message)?)
            }
            ("DELETE", ["channels", channel, "messages", message]) => {
                Self::DeleteMessage(id(channel)?, id(message)?)
            }
            ("POST", ["channels", channel, "typing"]) => Self::Typing(id(channel)?),
            ("POST", ["channels", channel, "messages", message, "threads"]) => {
                Self::CreateThread(id(channel)?, id(message)?)
            }
            (
                "PUT",
                [
                    "channels",
                    channel,
                    "messages",
                    message,
                    "reactions",
                    emoji,
                    "@me",
                ],
            ) => Self::React(id(channel)?, id(message)?, (*emoji).to_owned()),
            ("POST", ["interactions", interaction, token, "callback"]) => {
                Self::Callback(id(interaction)?, (*token).to_owned())
            }
            ("POST", ["webhooks", _, token]) => Self::Followup((*token).to_owned()),
            ("POST", ["attachments", "refresh-urls"]) => Self::RefreshUrls,
            _ => return None,
        })
    }

    /// Returns the name for records and faults.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::GatewayBot => "gateway_bot",
            Self::Me => "me",
            Self::Application => "application",
            Self::Commands => "commands",
            Self::Channel(_) => "channel",
            Self::CreateMessage(_) => "create_message",
            Self::ListMessages(_) => "list_messages",
            Self::EditMessage(..) => "edit_message",
            Self::DeleteMessage(..) => "delete_message",
            Self::Typing(_) => "typing",
            Self::CreateThread(..) => "create_thread",
            Self::React(..) => "react",
            Self::Callback(..) => "callback",
            Self::Followup(_) => "followup",
            Self::RefreshUrls => "refresh_urls",
        }
    }

    /// Returns the channel of the route.
    pub(super) fn channel(&self) -> Option<u64> {
        match self {
            Self::Channel(channel)
            | Self::CreateMessage(channel)
            | Self::ListMessages(channel)
            | Self::EditMessage(channel, _)
            | Self::DeleteMessage(channel, _)
            | Self::Typing(channel)
            | Self::CreateThread(channel, _)
            | Self::React(channel, _, _) => Some(*channel),
            _ => None,
        }
    }

    /// `true` if the call needs the bot token.
    pub(super) fn needs_token(&self) -> bool {
        !matches!(self, Self::Callback(..) | Self::Followup(_) | Self::Gateway)
    }

    /// Returns the number of calls that are allowed within five seconds.
    pub(super) fn limit(&self) -> usize {
        match self {
            Self::CreateMessage(_)
            | Self::EditMessage(..)
            | Self::Typing(_)
            | Self::ListMessages(_) => 5,
            _ => 50,
        }
    }
}

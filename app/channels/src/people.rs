//! Decision whether a person may use a bot, and as which user.

use deerflow_domain::channels::Connection;
use sha2::{Digest, Sha256};

use crate::config::Rules;
use crate::platform::{ChatKind, Event, EventBody};

/// Maximum length of the readable part of a user id.
const MAX_READABLE: usize = 48;

/// Beginning of a group's user id, after the platform.
const GROUP_PREFIX: &str = "group-";

/// Decision about an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The person may use the bot.
    Admitted {
        /// User whose threads, files and memory the run has.
        user_id: String,
        /// `true` if the person is connected to that user.
        connected: bool,
    },
    /// The event is ignored without a reply.
    Ignored(&'static str),
    /// The person has to connect an account first.
    MustConnect,
}

/// Decides about an event of a person. `connection` is the active connection of that person.
pub(crate) fn admit(
    provider: &str,
    rules: &Rules,
    event: &Event,
    connection: Option<&Connection>,
) -> Admission {
    let is_allowed =
        |list: &[String], id: &str| list.is_empty() || list.iter().any(|one| one == id);
    if !is_allowed(&rules.allowed_users, &event.sender.id) {
        return Admission::Ignored("the person is not in allowed_users");
    }
    if !is_allowed(&rules.allowed_guilds, &event.workspace) {
        return Admission::Ignored("the workspace is not in allowed_guilds");
    }
    match connection {
        Some(connection) => Admission::Admitted {
            user_id: connection.user_id.clone(),
            connected: true,
        },
        None if rules.connections.enabled && rules.connections.require_bound_identity => {
            Admission::MustConnect
        }
        None => Admission::Admitted {
            user_id: unconnected_user(provider, event),
            connected: false,
        },
    }
}

/// Reports whether the rules on mentions require a message to be ignored.
pub(crate) fn is_unaddressed(rules: &Rules, event: &Event) -> bool {
    let EventBody::Message(message) = &event.body else {
        return false;
    };
    let is_exempt = |id: &String| rules.allowed_channels.contains(id);
    rules.mention_only
        && event.chat.kind == ChatKind::Group
        && !message.addressed
        && !is_exempt(&event.chat.id)
        && !event.chat.parent.as_ref().is_some_and(is_exempt)
}

/// Reports whether an unconnected person may continue a conversation of an owner. Imported
/// conversations may have the owner that the thread had in DeerFlow. In a group the person must not
/// act as that user; in a direct chat only if people do not connect accounts, because the person
/// always was that user then.
pub(crate) fn may_continue(provider: &str, rules: &Rules, event: &Event, owner: &str) -> bool {
    let place = |kind, id: &str| {
        [event.workspace.as_str(), ""]
            .map(|workspace| user_of_place(provider, workspace, kind, id))
            .contains(&owner.to_owned())
    };
    match event.chat.kind {
        // That of a group also after the group has got another id.
        ChatKind::Group => owner.starts_with(&format!("{provider}-{GROUP_PREFIX}")),
        ChatKind::Direct => {
            !rules.connections.enabled
                || owner == event.sender.id
                || place(ChatKind::Direct, &event.sender.id)
                || place(ChatKind::Group, &event.chat.id)
        }
    }
}

/// Returns the user id of an unconnected person. People of one group share their thread, and
/// therefore its owner.
fn unconnected_user(provider: &str, event: &Event) -> String {
    let id = match event.chat.kind {
        ChatKind::Direct => &event.sender.id,
        ChatKind::Group => &event.chat.id,
    };
    user_of_place(provider, &event.workspace, event.chat.kind, id)
}

/// Returns the user id of an unconnected person, or of a group, with this id.
pub(crate) fn user_of_place(provider: &str, workspace: &str, kind: ChatKind, id: &str) -> String {
    let kind = match kind {
        ChatKind::Direct => "",
        ChatKind::Group => GROUP_PREFIX,
    };
    let scope = format!("{workspace}\u{0}{kind}{id}");
    let readable: String = id
        .chars()
        .filter(|character| character.is_ascii_alphanumeric())
        .take(MAX_READABLE)
        .collect();
    // Different ids may have the same readable part.
    let digest = hex::encode(&Sha256::digest(scope.as_bytes())[..6]);
    format!("{provider}-{kind}{readable}-{digest}")
}

#[cfg(test)]
#[path = "people_tests.rs"]
mod tests;

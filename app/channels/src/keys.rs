//! Keys of conversations.

use crate::platform::{Chat, ChatKind, ChatMessage, GroupConversations};

/// Returns the key of a message's conversation. `replied` is the conversation of the message that
/// it replies to, if that is known.
///
/// A direct chat is one conversation. A topic is one everywhere. Another group message belongs to
/// the root of its reply chain, or to the chat, as the platform prefers.
pub(crate) fn conversation_key(
    chat: &Chat,
    message_id: &str,
    message: &ChatMessage,
    replied: Option<String>,
    groups: GroupConversations,
) -> String {
    if let Some(topic) = &message.topic {
        return format!("{}:{topic}", chat.id);
    }
    match (chat.kind, groups) {
        (ChatKind::Direct, _) | (ChatKind::Group, GroupConversations::Chat) => chat.id.clone(),
        (ChatKind::Group, GroupConversations::ReplyChain) => replied.unwrap_or_else(|| {
            let root = message.reply_to.as_deref().unwrap_or(message_id);
            format!("{}:{root}", chat.id)
        }),
    }
}

/// Returns the key under which the thread of a conversation is stored. Connected users have a
/// thread of their own in each conversation, so that no person acts with the identity of another.
pub(crate) fn thread_key(conversation: &str, connected_user: Option<&str>) -> String {
    match connected_user {
        Some(user) => format!("{conversation}#{user}"),
        None => conversation.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(kind: ChatKind) -> Chat {
        Chat {
            id: "42".to_owned(),
            kind,
            parent: None,
        }
    }

    fn key(
        kind: ChatKind,
        topic: Option<&str>,
        reply_to: Option<&str>,
        replied: Option<&str>,
        groups: GroupConversations,
    ) -> String {
        let message = ChatMessage {
            topic: topic.map(str::to_owned),
            reply_to: reply_to.map(str::to_owned),
            ..ChatMessage::default()
        };
        conversation_key(
            &chat(kind),
            "7",
            &message,
            replied.map(str::to_owned),
            groups,
        )
    }

    #[test]
    fn key_follows_chat_topic_or_reply_chain() {
        use ChatKind::{Direct, Group};
        use GroupConversations::{Chat, ReplyChain};
        assert_eq!(key(Direct, None, Some("3"), None, ReplyChain), "42");
        assert_eq!(key(Direct, Some("t"), None, None, ReplyChain), "42:t");
        assert_eq!(key(Group, Some("t"), Some("3"), None, ReplyChain), "42:t");
        assert_eq!(key(Group, None, None, None, ReplyChain), "42:7");
        assert_eq!(key(Group, None, Some("3"), None, ReplyChain), "42:3");
        assert_eq!(
            key(Group, None, Some("9"), Some("42:3"), ReplyChain),
            "42:3"
        );
        assert_eq!(key(Group, None, Some("3"), None, Chat), "42");
    }

    #[test]
    fn connected_users_have_threads_of_their_own() {
        assert_eq!(thread_key("42", None), "42");
        assert_ne!(thread_key("42", Some("ann")), thread_key("42", Some("bob")));
    }
}

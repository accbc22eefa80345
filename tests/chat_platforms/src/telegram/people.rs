//! Actions of people in chats with the bot.

use std::sync::Arc;

use serde_json::{Value, json};

use super::entities::detect;
use super::shared::Shared;
use super::world::{Posted, PostedFile, PressAnswer, World, chat_type};

/// Message of a person.
#[derive(Debug, Clone, Default)]
pub struct Post {
    /// Text, or the caption of the file.
    pub text: String,
    /// Topic of a forum.
    pub topic: Option<i64>,
    /// Message that is answered.
    pub reply_to: Option<i64>,
    /// Id that the messages of an album share.
    pub album: Option<String>,
    /// File.
    pub file: Option<PostedFile>,
    /// `true` for another bot as author.
    pub by_other_bot: bool,
}

impl PostedFile {
    /// Creates a photo.
    pub fn photo(bytes: impl Into<bytes::Bytes>) -> Self {
        Self::new("photo", "photo.jpg", "image/jpeg", bytes.into())
    }

    /// Creates a document.
    pub fn document(name: &str, media_type: &str, bytes: impl Into<bytes::Bytes>) -> Self {
        Self::new("document", name, media_type, bytes.into())
    }

    /// Announces another size than that of the content.
    #[must_use]
    pub fn with_size(mut self, size: u64) -> Self {
        self.size = size;
        self
    }

    fn new(kind: &'static str, name: &str, media_type: &str, bytes: bytes::Bytes) -> Self {
        Self {
            kind,
            name: name.to_owned(),
            media_type: media_type.to_owned(),
            file_id: String::new(),
            size: bytes.len() as u64,
            bytes,
        }
    }
}

/// Chats with the bot, as people use them and tests read them. Clones share them.
#[derive(Debug, Clone)]
pub struct People(Arc<Shared>);

impl People {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.0
    }

    /// Writes a text and returns the id of the message. Chats with positive ids are private, those
    /// with ids such as `-1001` are supergroups, other negative ids are groups; each is created by
    /// its first message.
    pub fn say(&self, chat: i64, from: i64, text: &str) -> i64 {
        let post = Post {
            text: text.to_owned(),
            ..Post::default()
        };
        self.post(chat, from, post)
    }

    /// Writes a text as a reply.
    pub fn reply(&self, chat: i64, from: i64, reply_to: i64, text: &str) -> i64 {
        let post = Post {
            text: text.to_owned(),
            reply_to: Some(reply_to),
            ..Post::default()
        };
        self.post(chat, from, post)
    }

    /// Sends a message and returns its id.
    pub fn post(&self, chat: i64, from: i64, post: Post) -> i64 {
        let privacy_mode = self.shared().options.privacy_mode;
        self.shared().change(|world| {
            world.room(chat);
            let file = post.file.map(|file| world.store_file(file));
            let mut posted = world.new_post(chat, from);
            posted.entities = detect(&post.text);
            posted.source.clone_from(&post.text);
            posted.text = post.text;
            posted.topic = post.topic;
            posted.reply_to = post.reply_to;
            posted.file = file;
            let mut message = world.message(chat, &posted);
            if let Some(album) = post.album {
                message["media_group_id"] = json!(album);
            }
            if post.by_other_bot {
                message["from"]["is_bot"] = json!(true);
            }
            let id = posted.id;
            if chat > 0 || !privacy_mode || concerns_bot(world, chat, &posted) {
                world.queue.push("message", message);
            }
            world.room(chat).posts.insert(id, posted);
            id
        })
    }

    /// Delivers a message once more, under another update id.
    pub fn repeat(&self, chat: i64, message: i64) {
        self.shared().change(|world| {
            if let Some(post) = world.room(chat).posts.get(&message).cloned() {
                let repeated = world.message(chat, &post);
                world.queue.push("message", repeated);
            }
        });
    }

    /// Changes the text of a person's message.
    pub fn edit(&self, chat: i64, message: i64, text: &str) {
        self.shared().change(|world| {
            let Some(post) = world.room(chat).posts.get_mut(&message) else {
                return;
            };
            text.clone_into(&mut post.text);
            post.edits += 1;
            let post = post.clone();
            let edited = world.message(chat, &post);
            world.queue.push("edited_message", edited);
        });
    }

    /// Creates a topic in a forum (or in a private chat with topics) and returns its id.
    pub fn add_topic(&self, chat: i64) -> i64 {
        self.shared().change(|world| {
            let post = world.new_post(chat, chat.abs());
            let room = world.room(chat);
            room.is_forum = chat_type(chat) == "supergroup";
            room.topics.push(post.id);
            let id = post.id;
            room.posts.insert(id, post);
            id
        })
    }

    /// Presses a button and returns the id of the press.
    pub fn press_button(&self, chat: i64, message: i64, from: i64, data: &str) -> String {
        self.shared().change(|world| {
            let id = format!("press{}", world.take_id());
            world.presses.insert(id.clone(), PressAnswer::default());
            let post = world.room(chat).posts.get(&message).cloned();
            let shown = post.map(|post| world.message(chat, &post));
            let press = json!({
                "id": id,
                "from": world.user(from),
                "message": shown,
                "chat_instance": format!("instance{chat}"),
                "data": data,
            });
            world.queue.push("callback_query", press);
            id
        })
    }

    /// Presses the stop button of the draft in a chat; returns `false` if there is none.
    pub fn stop_draft(&self, chat: i64) -> bool {
        let now = self.shared().now();
        self.shared().change(|world| {
            let draft = world.room(chat).shown_draft(now).cloned();
            let Some(draft) = draft.filter(|draft| draft.can_stop) else {
                return false;
            };
            let mut stopped = json!({"chat": world.chat(chat), "draft_id": draft.id});
            if let Some(topic) = draft.topic {
                stopped["message_thread_id"] = json!(topic);
            }
            world.queue.push("stopped_message_generation", stopped);
            true
        })
    }

    /// Deletes a message without an update, as people can.
    pub fn delete(&self, chat: i64, message: i64) {
        self.shared()
            .change(|world| world.room(chat).posts.remove(&message));
    }

    /// Deletes a topic.
    pub fn delete_topic(&self, chat: i64, topic: i64) {
        self.shared()
            .change(|world| world.room(chat).topics.retain(|id| *id != topic));
    }

    /// Blocks the bot in a private chat or removes it from a group, or reverses that.
    pub fn set_blocked(&self, chat: i64, blocked: bool) {
        self.shared()
            .change(|world| world.room(chat).blocked = blocked);
    }

    /// Upgrades a group to a supergroup with a new id.
    pub fn migrate(&self, chat: i64, to: i64) {
        self.shared().change(|world| {
            let service = world.new_post(chat, chat.abs());
            let mut message = world.message(chat, &service);
            message["migrate_to_chat_id"] = json!(to);
            world.queue.push("message", message);
            world.room(chat).migrated_to = Some(to);
            let service = world.new_post(to, chat.abs());
            let mut message = world.message(to, &service);
            message["migrate_from_chat_id"] = json!(chat);
            world.queue.push("message", message);
            world.room(to).posts.insert(service.id, service);
        });
    }

    /// Queues an update as it is; an `update_id` is added if it is an object without one.
    pub fn raw_update(&self, update: Value) {
        self.shared().change(|world| world.queue.push_raw(update));
    }
}

/// `true` if a bot in privacy mode receives the message of a group.
fn concerns_bot(world: &World, chat: i64, post: &Posted) -> bool {
    let name = format!("@{}", world.bot_name).to_lowercase();
    let replies_to_bot = post
        .reply_to
        .and_then(|id| world.rooms.get(&chat)?.posts.get(&id))
        .is_some_and(|replied| replied.by_bot);
    post.text.starts_with('/') || post.text.to_lowercase().contains(&name) || replies_to_bot
}

//! Chats with their messages, topics, drafts and files.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use super::failure::ApiFailure;
use super::limits::Limits;
use super::queue::UpdateQueue;

/// Time for which a draft is shown.
const DRAFT_LIFETIME: Duration = Duration::from_secs(30);
/// Unix time of the first message.
const FIRST_DATE: i64 = 1_763_870_000;

/// File of a message.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PostedFile {
    /// `photo` or `document`.
    pub kind: &'static str,
    /// File name.
    pub name: String,
    /// Media type.
    pub media_type: String,
    /// Id for `getFile`.
    pub file_id: String,
    /// Size in bytes. It may be larger than the stored content.
    pub size: u64,
    /// Content.
    #[serde(skip)]
    pub bytes: Bytes,
}

/// Message as people see it, with all edits applied.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Posted {
    /// Id within the chat.
    pub id: i64,
    /// Author; the bot's id for its own messages.
    pub from: i64,
    /// `true` for messages of the bot under test.
    pub by_bot: bool,
    /// Text or caption after entities are parsed.
    pub text: String,
    /// Entities of the text.
    pub entities: Vec<Value>,
    /// Text as the bot sent it.
    pub source: String,
    /// Topic.
    pub topic: Option<i64>,
    /// Message that is answered.
    pub reply_to: Option<i64>,
    /// Inline keyboard; null without one.
    pub keyboard: Value,
    /// File.
    pub file: Option<PostedFile>,
    /// Number of edits.
    pub edits: usize,
    /// Emoji of the bot's reactions.
    pub reactions: Vec<String>,
    /// Unix time.
    pub date: i64,
}

/// Preview of a message that is being written.
#[derive(Debug, Clone)]
pub struct Draft {
    /// Id that the bot chose.
    pub id: i64,
    /// Text after entities are parsed.
    pub text: String,
    /// `true` if the person sees a stop button.
    pub can_stop: bool,
    /// Topic.
    pub topic: Option<i64>,
    pub(super) shown_at: Instant,
}

/// Chat.
#[derive(Debug, Default)]
pub(super) struct Room {
    pub(super) is_forum: bool,
    pub(super) topics: Vec<i64>,
    pub(super) posts: BTreeMap<i64, Posted>,
    pub(super) draft: Option<Draft>,
    /// `true` if the person blocked the bot, or the group removed it.
    pub(super) blocked: bool,
    pub(super) migrated_to: Option<i64>,
}

/// Press of a button that waits for its answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PressAnswer {
    /// `true` if the bot answered.
    pub answered: bool,
    /// Text of the answer.
    pub text: String,
}

/// Everything that the fake knows.
#[derive(Debug)]
pub(super) struct World {
    pub(super) bot_id: i64,
    pub(super) bot_name: String,
    pub(super) rooms: BTreeMap<i64, Room>,
    pub(super) queue: UpdateQueue,
    pub(super) files: HashMap<String, PostedFile>,
    pub(super) presses: HashMap<String, PressAnswer>,
    pub(super) commands: Value,
    pub(super) limits: Limits,
    last_id: i64,
}

impl World {
    /// Creates a world without chats.
    pub(super) fn new(bot_id: i64, bot_name: String, queue: UpdateQueue, limits: Limits) -> Self {
        Self {
            bot_id,
            bot_name,
            rooms: BTreeMap::new(),
            queue,
            files: HashMap::new(),
            presses: HashMap::new(),
            commands: json!([]),
            limits,
            last_id: 0,
        }
    }

    /// Returns a number that is used once.
    pub(super) fn take_id(&mut self) -> i64 {
        self.last_id += 1;
        self.last_id
    }

    /// Returns a chat, which is created if it is unknown.
    pub(super) fn room(&mut self, chat: i64) -> &mut Room {
        self.rooms.entry(chat).or_default()
    }

    /// Returns the chat of a call by the bot.
    pub(super) fn reachable(&mut self, chat: i64) -> Result<&mut Room, ApiFailure> {
        let room = self
            .rooms
            .get_mut(&chat)
            .ok_or_else(|| ApiFailure::bad("chat not found"))?;
        if let Some(to) = room.migrated_to {
            return Err(ApiFailure::migrated(to));
        }
        if room.blocked {
            return Err(ApiFailure::forbidden(if chat > 0 {
                "bot was blocked by the user"
            } else {
                "bot was kicked from the group chat"
            }));
        }
        Ok(room)
    }

    /// Creates a message without a place in a chat; supergroups count for themselves, the other
    /// chats share one counter.
    pub(super) fn new_post(&mut self, chat: i64, from: i64) -> Posted {
        let own_counter = is_supergroup(chat);
        let id = match self
            .rooms
            .get(&chat)
            .and_then(|room| room.posts.keys().last())
        {
            Some(last) if own_counter => last + 1,
            None if own_counter => 1,
            _ => self.take_id(),
        };
        Posted {
            id,
            from,
            by_bot: from == self.bot_id,
            text: String::new(),
            entities: Vec::new(),
            source: String::new(),
            topic: None,
            reply_to: None,
            keyboard: Value::Null,
            file: None,
            edits: 0,
            reactions: Vec::new(),
            date: FIRST_DATE + id,
        }
    }

    /// Stores a file and returns it with its id.
    pub(super) fn store_file(&mut self, mut file: PostedFile) -> PostedFile {
        let number = self.take_id();
        file.file_id = format!("file{number}");
        self.files.insert(file.file_id.clone(), file.clone());
        file
    }

    /// Returns a person or the bot as the Bot API shows them.
    pub(super) fn user(&self, id: i64) -> Value {
        if id == self.bot_id {
            return json!({
                "id": id, "is_bot": true, "first_name": "Bot", "username": self.bot_name,
            });
        }
        json!({
            "id": id, "is_bot": false, "first_name": format!("Person {id}"),
            "username": format!("person{id}"),
        })
    }

    /// Returns a chat as the Bot API shows it.
    pub(super) fn chat(&self, id: i64) -> Value {
        let mut chat = json!({"id": id, "type": chat_type(id)});
        if id > 0 {
            chat["first_name"] = json!(format!("Person {id}"));
        } else {
            chat["title"] = json!(format!("Group {id}"));
        }
        if self.rooms.get(&id).is_some_and(|room| room.is_forum) {
            chat["is_forum"] = json!(true);
        }
        chat
    }

    /// Returns a message as the Bot API shows it.
    pub(super) fn message(&self, chat: i64, post: &Posted) -> Value {
        let mut message = self.plain_message(chat, post);
        let replied = post
            .reply_to
            .and_then(|id| self.rooms.get(&chat)?.posts.get(&id));
        if let Some(replied) = replied {
            message["reply_to_message"] = self.plain_message(chat, replied);
        }
        match post.topic {
            Some(topic) => {
                message["message_thread_id"] = json!(topic);
                message["is_topic_message"] = json!(true);
                // A message in a topic replies to the message that created it.
                if replied.is_none() {
                    message["reply_to_message"] = json!({
                        "message_id": topic, "date": FIRST_DATE, "chat": self.chat(chat),
                        "from": self.user(chat.abs()), "message_thread_id": topic,
                        "is_topic_message": true,
                        "forum_topic_created": {"name": "Topic", "icon_color": 7_322_096},
                    });
                }
            }
            // Replies in a supergroup name the root of their chain, which is not a topic.
            None if is_supergroup(chat) => {
                if let Some(root) = self.root_of(chat, post) {
                    message["message_thread_id"] = json!(root);
                }
            }
            None => {}
        }
        message
    }

    fn root_of(&self, chat: i64, post: &Posted) -> Option<i64> {
        let posts = &self.rooms.get(&chat)?.posts;
        let mut root = post.reply_to?;
        while let Some(above) = posts.get(&root).and_then(|post| post.reply_to) {
            root = above;
        }
        Some(root)
    }

    fn plain_message(&self, chat: i64, post: &Posted) -> Value {
        let mut message = json!({
            "message_id": post.id,
            "from": self.user(post.from),
            "chat": self.chat(chat),
            "date": post.date,
        });
        let (text, entities) = match post.file {
            Some(_) => ("caption", "caption_entities"),
            None => ("text", "entities"),
        };
        if !post.text.is_empty() {
            message[text] = json!(post.text);
        }
        if !post.entities.is_empty() {
            message[entities] = json!(post.entities);
        }
        if !post.keyboard.is_null() {
            message["reply_markup"] = post.keyboard.clone();
        }
        if let Some(file) = &post.file {
            message[file.kind] = shown_file(file);
        }
        if post.edits > 0 {
            message["edit_date"] = json!(post.date);
        }
        message
    }
}

impl Room {
    /// Returns the draft that is shown.
    pub(super) fn shown_draft(&self, now: Instant) -> Option<&Draft> {
        self.draft
            .as_ref()
            .filter(|draft| now.duration_since(draft.shown_at) < DRAFT_LIFETIME)
    }
}

fn shown_file(file: &PostedFile) -> Value {
    let unique = format!("u{}", file.file_id);
    if file.kind == "photo" {
        return json!([
            {"file_id": format!("{}-small", file.file_id), "file_unique_id": format!("{unique}s"),
             "width": 90, "height": 90, "file_size": 100},
            {"file_id": file.file_id, "file_unique_id": unique,
             "width": 800, "height": 800, "file_size": file.size},
        ]);
    }
    json!({
        "file_id": file.file_id, "file_unique_id": unique, "file_name": file.name,
        "mime_type": file.media_type, "file_size": file.size,
    })
}

/// Returns the type of a chat, which its id determines in this fake.
pub(super) fn chat_type(chat: i64) -> &'static str {
    match chat {
        _ if chat > 0 => "private",
        _ if is_supergroup(chat) => "supergroup",
        _ => "group",
    }
}

/// `true` for ids such as `-1001`, which supergroups have.
pub(super) fn is_supergroup(chat: i64) -> bool {
    chat.to_string().starts_with("-100")
}

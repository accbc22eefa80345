//! The conversation of a turn, its thread, and the progress of its row.

use deerflow_domain::channels::Conversation;
use deerflow_domain::threads::{Created, NewThread};
use harness::ids::ThreadId;
use harness::runtime::actor_context::scope;
use harness::runtime::runs::store::StoreError;
use harness::runtime::threads::ThreadView;
use serde_json::{Map, Value, json};

use super::context::{Person, Turn, TurnError};
use super::progress::RowProgress;
use crate::bot::thread_of;
use crate::keys::thread_key;
use crate::people::may_continue;
use crate::platform::EventBody;

/// Returns the conversation of the turn, which is created with its thread if it does not exist. One
/// of an owner whom the person must not act as continues in a new thread.
pub(super) async fn of_turn(turn: &Turn<'_>, person: &Person) -> Result<Conversation, TurnError> {
    let bot = turn.bot;
    let connected = person.connected.then_some(person.user_id.as_str());
    let key = thread_key(turn.conversation(), connected);
    let conversations = &bot.hub.stores.conversations;
    if let Some(found) = conversations.find(&bot.claim.account, &key).await? {
        if is_of_person(turn, person, &found) {
            return Ok(found);
        }
        let own = new_conversation(turn, person, key, thread_of(turn.id()));
        update(turn, &own).await?;
        create_thread(turn, &own).await?;
        return Ok(own);
    }
    let conversation = new_conversation(turn, person, key, thread_of(turn.id()));
    let created = conversations.create(&bot.claim, conversation).await?;
    create_thread(turn, &created).await?;
    Ok(created)
}

/// Returns the conversation of the turn, if it exists and the person may continue it.
pub(super) async fn find(
    turn: &Turn<'_>,
    person: &Person,
) -> Result<Option<Conversation>, TurnError> {
    let bot = turn.bot;
    let connected = person.connected.then_some(person.user_id.as_str());
    let key = thread_key(turn.conversation(), connected);
    let conversations = &bot.hub.stores.conversations;
    let found = conversations.find(&bot.claim.account, &key).await?;
    Ok(found.filter(|found| is_of_person(turn, person, found)))
}

fn is_of_person(turn: &Turn<'_>, person: &Person, conversation: &Conversation) -> bool {
    let (bot, owner) = (turn.bot, conversation.user_id.as_str());
    owner == person.user_id
        || !person.connected && may_continue(bot.provider, &bot.rules, turn.event(), owner)
}

/// Builds the conversation of the turn with this key and thread.
pub(super) fn new_conversation(
    turn: &Turn<'_>,
    person: &Person,
    key: String,
    thread_id: ThreadId,
) -> Conversation {
    let (bot, event) = (turn.bot, turn.event());
    let topic = match &event.body {
        EventBody::Message(message) => message.topic.clone(),
        _ => None,
    };
    let now = bot.hub.clock.now();
    Conversation {
        account: bot.claim.account.clone(),
        key,
        chat: event.chat.id.clone(),
        topic,
        thread_id,
        user_id: person.user_id.clone(),
        options: Map::new(),
        question: None,
        created_at: now,
        updated_at: now,
    }
}

/// Creates the thread of a conversation, with the metadata that the web UI shows.
pub(super) async fn create_thread(
    turn: &Turn<'_>,
    conversation: &Conversation,
) -> Result<(), TurnError> {
    let bot = turn.bot;
    let mut source = Map::from_iter([
        ("type".to_owned(), json!("im_channel")),
        ("provider".to_owned(), json!(bot.provider)),
        ("chat_id".to_owned(), json!(conversation.chat)),
    ]);
    if let Some(topic) = &conversation.topic {
        source.insert("topic_id".to_owned(), json!(topic));
        source.insert("thread_ts".to_owned(), json!(turn.event().id));
    }
    let thread = NewThread {
        thread_id: conversation.thread_id.clone(),
        user_id: Some(conversation.user_id.clone()),
        assistant: None,
        assistant_id: None,
        metadata: Map::from_iter([("channel_source".to_owned(), Value::Object(source))]),
        ttl: None,
        request: None,
        at: bot.hub.clock.now(),
    };
    match bot.hub.threads.create(thread).await {
        Ok(Created::New(_) | Created::Existing(_)) => Ok(()),
        Ok(Created::Taken | Created::Known(_)) => Err(TurnError::Retry(format!(
            "thread {} belongs to another user",
            conversation.thread_id
        ))),
        Err(StoreError::QuotaExceeded(exceeded)) => Err(TurnError::QuotaExceeded(exceeded)),
        Err(error) => Err(TurnError::Retry(error.to_string())),
    }
}

/// Stores the changed conversation.
pub(super) async fn update(turn: &Turn<'_>, conversation: &Conversation) -> Result<(), TurnError> {
    let (bot, now) = (turn.bot, turn.bot.hub.clock.now());
    let conversations = &bot.hub.stores.conversations;
    Ok(conversations.update(&bot.claim, conversation, now).await?)
}

/// Stores the progress of the first row, if it has changed.
pub(super) async fn save_progress(
    turn: &Turn<'_>,
    progress: &RowProgress,
) -> Result<(), TurnError> {
    let value = progress.value();
    if value == turn.group[0].row.progress || *progress == RowProgress::default() {
        return Ok(());
    }
    let (bot, inbox) = (turn.bot, &turn.bot.hub.stores.inbox);
    Ok(inbox.save_progress(&bot.claim, turn.id(), value).await?)
}

/// Returns the thread of a conversation with its newest state; `None` if it does not exist.
pub(super) async fn read_thread(
    turn: &Turn<'_>,
    conversation: &Conversation,
) -> Result<Option<ThreadView>, TurnError> {
    let bot = turn.bot;
    let reading = bot.hub.client.get_thread(&conversation.thread_id);
    scope(bot.actor(&conversation.user_id), reading)
        .await
        .map_err(|error| TurnError::Retry(error.to_string()))
}

/// Returns the messages of a thread.
pub(super) fn messages_of(view: &ThreadView) -> &[Value] {
    view.values
        .get("messages")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

//! Execution of commands.

use deerflow_domain::channels::Conversation;
use harness::runtime::actor_context::scope;
use serde_json::{Map, Value};

use super::chat::{self, Input};
use super::context::{Outcome, Person, Turn, TurnError};
use super::{conversation, intake};
use crate::bot::{Lane, thread_of};
use crate::commands::Command;
use crate::keys::thread_key;
use crate::words;

/// Conversation option that selects the model.
const MODEL: &str = "model_name";

pub(super) async fn handle(
    turn: &Turn<'_>,
    lane: &Lane,
    person: &Person,
    command: Command,
) -> Result<Outcome, TurnError> {
    match command {
        Command::New => new(turn, person).await,
        Command::Help | Command::Connect(_) => Ok(turn.say(&words::help())),
        Command::Start(_) => Ok(turn.say(words::GREETING)),
        Command::Status => status(turn, person).await,
        Command::Models(name) => models(turn, person, name).await,
        Command::Memory => memory(turn, person).await,
        Command::Goal(goal) => self::goal(turn, person, goal).await,
        Command::Stop => Ok(turn.say(words::NOTHING_TO_STOP)),
        Command::Bootstrap(text) => {
            let conversation = conversation::of_turn(turn, person).await?;
            let input = Input::Message {
                text: text.unwrap_or_else(|| words::BOOTSTRAP.to_owned()),
                options: Map::from_iter([("is_bootstrap".to_owned(), true.into())]),
            };
            chat::run(turn, lane, person, conversation, input).await
        }
        Command::Other(name) => {
            if is_skill(turn, person, &name).await {
                let conversation = conversation::of_turn(turn, person).await?;
                let input = Input::Message {
                    text: intake::text_of(turn),
                    options: Map::new(),
                };
                return chat::run(turn, lane, person, conversation, input).await;
            }
            Ok(turn.refuse("unknown command", &words::unknown_command(&name)))
        }
    }
}

/// Continues the conversation in a new thread.
async fn new(turn: &Turn<'_>, person: &Person) -> Result<Outcome, TurnError> {
    let bot = turn.bot;
    let connected = person.connected.then_some(person.user_id.as_str());
    let key = thread_key(turn.conversation(), connected);
    let thread = thread_of(turn.id());
    let conversations = &bot.hub.stores.conversations;
    let conversation = match conversations.find(&bot.claim.account, &key).await? {
        Some(found) => Conversation {
            thread_id: thread,
            user_id: person.user_id.clone(),
            question: None,
            ..found
        },
        None => {
            let conversation = conversation::new_conversation(turn, person, key, thread);
            conversations.create(&bot.claim, conversation).await?
        }
    };
    conversation::update(turn, &conversation).await?;
    conversation::create_thread(turn, &conversation).await?;
    Ok(turn.say(words::NEW_CONVERSATION))
}

async fn status(turn: &Turn<'_>, person: &Person) -> Result<Outcome, TurnError> {
    let Some(conversation) = conversation::find(turn, person).await? else {
        return Ok(turn.say("There is no conversation yet."));
    };
    let model = conversation
        .options
        .get(MODEL)
        .and_then(Value::as_str)
        .unwrap_or("the default");
    let waiting = match &conversation.question {
        Some(_) => "\nA question waits for your answer.",
        None => "",
    };
    Ok(turn.say(&format!(
        "Thread: `{}`\nModel: {model}{waiting}",
        conversation.thread_id
    )))
}

async fn models(
    turn: &Turn<'_>,
    person: &Person,
    name: Option<String>,
) -> Result<Outcome, TurnError> {
    let Ok(list) = turn.bot.hub.client.list_models() else {
        return Ok(turn.say(words::UNAVAILABLE));
    };
    let names: Vec<&str> = list
        .models
        .iter()
        .map(|model| model.name.as_str())
        .collect();
    let Some(name) = name else {
        let mut text = "Models (select one with `/models NAME`):".to_owned();
        for name in names {
            text.push_str(&format!("\n- `{name}`"));
        }
        return Ok(turn.say(&text));
    };
    if !names.contains(&name.as_str()) {
        return Ok(turn.refuse("unknown model", &format!("There is no model `{name}`.")));
    }
    let mut conversation = conversation::of_turn(turn, person).await?;
    conversation
        .options
        .insert(MODEL.to_owned(), name.clone().into());
    conversation::update(turn, &conversation).await?;
    Ok(turn.say(&format!("This conversation uses the model `{name}` now.")))
}

async fn memory(turn: &Turn<'_>, person: &Person) -> Result<Outcome, TurnError> {
    let bot = turn.bot;
    let reading = scope(bot.actor(&person.user_id), bot.hub.client.get_memory());
    Ok(match reading.await {
        Ok(memory) => turn.say(&format!(
            "I remember {} facts about you.",
            memory.facts.len()
        )),
        Err(error) => {
            tracing::warn!(%error, "the memory cannot be read");
            turn.say(words::UNAVAILABLE)
        }
    })
}

async fn goal(
    turn: &Turn<'_>,
    person: &Person,
    goal: Option<String>,
) -> Result<Outcome, TurnError> {
    let bot = turn.bot;
    let conversation = conversation::of_turn(turn, person).await?;
    let (client, thread) = (&bot.hub.client, &conversation.thread_id);
    let changing = async {
        match goal.as_deref() {
            None => client.get_goal(thread).await,
            Some("clear") => client.clear_goal(thread).await,
            Some(objective) => client.set_goal(thread, objective).await,
        }
    };
    Ok(
        match scope(bot.actor(&conversation.user_id), changing).await {
            Ok(view) => match view.goal {
                Some(goal) => turn.say(&format!("The goal is: {}", goal.objective)),
                None => turn.say("This conversation has no goal."),
            },
            Err(error) => turn.refuse("the goal was not changed", &error.to_string()),
        },
    )
}

/// Reports whether the person has an enabled skill of this name.
async fn is_skill(turn: &Turn<'_>, person: &Person, name: &str) -> bool {
    let bot = turn.bot;
    let listing = scope(bot.actor(&person.user_id), bot.hub.client.list_skills(true));
    match listing.await {
        Ok(list) => list.skills.iter().any(|skill| skill.name == name),
        Err(error) => {
            tracing::warn!(%error, "the skills cannot be listed");
            false
        }
    }
}

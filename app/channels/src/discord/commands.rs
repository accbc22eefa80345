//! Commands that Discord lists, as messages.

use serde_json::{Value, json};

use super::decode::{View, chat_of, display_name};
use super::ids::{id, time_of};
use crate::platform::{ChatMessage, CommandHelp, Event, EventBody, MAX_TEXT_BYTES, Sender};

/// Type of interactions with commands.
const COMMAND: u64 = 2;
/// Name of the option that takes the rest of the command.
const OPTION: &str = "text";
/// Maximum number of characters of a description.
const MAX_DESCRIPTION: usize = 100;
/// Maximum number of characters of the repeated command in its answer.
const MAX_SHOWN: usize = 200;

/// Answer to a command, which Discord requires within three seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// Interaction.
    pub(super) interaction: String,
    /// Token of the interaction.
    pub(super) token: String,
    /// Text that only the person sees.
    pub(super) text: String,
}

/// Builds the list of commands that replaces the former one.
pub(super) fn list(commands: &[CommandHelp]) -> Value {
    let commands: Vec<Value> = commands
        .iter()
        .map(|command| {
            let description: String = command.description.chars().take(MAX_DESCRIPTION).collect();
            json!({
                "name": command.name, "type": 1, "description": description,
                "options": [{
                    "name": OPTION, "type": 3, "description": "Rest of the command",
                    "required": false,
                }],
            })
        })
        .collect();
    json!(commands)
}

/// Decodes a command as the message that a person would have typed. `Ok(None)` for other
/// interactions.
///
/// # Errors
/// Words for the log if it is malformed.
pub(super) fn decode(data: &Value, view: View<'_>) -> Result<Option<Event>, &'static str> {
    if data["type"].as_u64() != Some(COMMAND) {
        return Ok(None);
    }
    let interaction = id(&data["id"]).ok_or("a command without id")?;
    let channel = id(&data["channel_id"]).ok_or("a command without channel")?;
    let user = if data["user"].is_object() {
        &data["user"]
    } else {
        &data["member"]["user"]
    };
    let person = id(&user["id"]).ok_or("a command without person")?;
    let text = text_of(&data["data"]).ok_or("a command without name")?;
    let guild = id(&data["guild_id"]).or(view.place.guild.as_deref());
    Ok(Some(Event {
        id: format!("command:{interaction}"),
        workspace: guild.unwrap_or_default().to_owned(),
        chat: chat_of(channel, guild, view.place.parent.clone()),
        sender: Sender {
            id: person.to_owned(),
            name: display_name(user, &data["member"]),
        },
        at: time_of(interaction),
        body: EventBody::Message(ChatMessage {
            text,
            addressed: true,
            ..ChatMessage::default()
        }),
        context: json!({"channel": channel}),
    }))
}

/// Returns the answer to a command; `None` for other interactions.
pub(super) fn answer(data: &Value) -> Option<Answer> {
    if data["type"].as_u64() != Some(COMMAND) {
        return None;
    }
    Some(Answer {
        interaction: id(&data["id"])?.to_owned(),
        token: data["token"].as_str()?.to_owned(),
        text: text_of(&data["data"])?.chars().take(MAX_SHOWN).collect(),
    })
}

/// Returns the command as it would be typed.
fn text_of(command: &Value) -> Option<String> {
    let name = command["name"].as_str().filter(|name| {
        (1..=32).contains(&name.len())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    })?;
    let options = command["options"].as_array().into_iter().flatten();
    let rest = options
        .filter(|option| option["name"] == OPTION)
        .find_map(|option| option["value"].as_str())
        .map(str::trim)
        .filter(|rest| !rest.is_empty() && rest.len() < MAX_TEXT_BYTES / 2);
    Some(match rest {
        Some(rest) => format!("/{name} {rest}"),
        None => format!("/{name}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discord::places::Place;

    fn command(data: &Value) -> Result<Option<Event>, &'static str> {
        let place = Place::default();
        let view = View {
            bot: "1",
            thread_mode: true,
            place: &place,
        };
        decode(data, view)
    }

    #[test]
    fn command_becomes_the_typed_text() {
        let data = json!({
            "id": "900", "type": 2, "token": "t", "channel_id": "20", "guild_id": "1000",
            "member": {"user": {"id": "7", "username": "a"}},
            "data": {"name": "goal", "options": [{"name": "text", "value": " ship it "}]},
        });
        let event = command(&data).unwrap().unwrap();
        assert_eq!(event.id, "command:900");
        assert_eq!(event.chat.id, "20");
        let EventBody::Message(message) = event.body else {
            panic!("a message");
        };
        assert_eq!(
            (message.text.as_str(), message.addressed),
            ("/goal ship it", true)
        );
        assert_eq!(answer(&data).unwrap().text, "/goal ship it");
        assert_eq!(command(&json!({"type": 3})), Ok(None));
    }

    #[test]
    fn hostile_commands_are_errors() {
        let valid = json!({
            "id": "900", "type": 2, "token": "t", "channel_id": "20", "user": {"id": "7"},
            "data": {"name": "new", "options": {"a": 1}},
        });
        assert!(command(&valid).unwrap().is_some());
        for (key, value) in [
            ("id", json!(900)),
            ("channel_id", json!("../20")),
            ("user", json!({})),
            ("data", json!({"name": "a b"})),
            ("data", json!([])),
        ] {
            let mut data = valid.clone();
            data[key] = value;
            assert!(command(&data).is_err(), "{data}");
        }
    }
}

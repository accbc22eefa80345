//! Options of a conversation's runs.

use serde_json::{Map, Value, json};

use crate::config::{Rules, SessionLayer};

/// Default maximum number of steps of a run.
const RECURSION_LIMIT: u64 = 100;
/// Assistant of conversations without another one.
const LEAD_AGENT: &str = "lead_agent";
/// Maximum length of a person's id that agents and commands see.
const MAX_PERSON_CHARS: usize = 256;

/// Resolved options of a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RunOptions {
    /// Assistant.
    pub(crate) assistant: String,
    /// Maximum number of steps.
    pub(crate) recursion_limit: u64,
    /// Options of the agent.
    pub(crate) options: Map<String, Value>,
}

/// Person and place of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunPlace<'a> {
    /// Platform.
    pub(crate) provider: &'a str,
    /// Id of the person on the platform.
    pub(crate) person: &'a str,
    /// Owner of the run.
    pub(crate) user_id: &'a str,
}

/// Name that is no name of a custom agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the assistant {0:?} of this channel is not a valid agent name; use letters, digits and hyphens"
)]
pub(crate) struct InvalidAgentName(pub(crate) String);

/// Merges the layers of a session in the order defaults, all channels, this channel, this person;
/// then the choices made in the conversation.
pub(crate) fn run_options(
    rules: &Rules,
    place: RunPlace<'_>,
    chosen: &Map<String, Value>,
) -> Result<RunOptions, InvalidAgentName> {
    let [general, own] = &rules.session;
    let of_person = own
        .users
        .get(place.person)
        .or_else(|| own.users.get(place.user_id));
    let layers: Vec<&SessionLayer> = [Some(general), Some(own), of_person]
        .into_iter()
        .flatten()
        .collect();
    let mut config = Map::new();
    let mut options = json!({
        "thinking_enabled": true,
        "is_plan_mode": false,
        "subagent_enabled": false,
    })
    .as_object()
    .cloned()
    .unwrap_or_default();
    for layer in &layers {
        config.extend(layer.config.clone());
        if let Some(Value::Object(configurable)) = layer.config.get("configurable") {
            options.extend(configurable.clone());
        }
        options.extend(layer.context.clone());
    }
    let assistant = layers
        .iter()
        .rev()
        .find_map(|layer| layer.assistant_id.as_deref())
        .unwrap_or(LEAD_AGENT);
    let assistant = match assistant {
        LEAD_AGENT => LEAD_AGENT.to_owned(),
        flow if flow.starts_with("flow-") => flow.to_owned(),
        custom => {
            options.insert("agent_name".to_owned(), agent_name(custom)?.into());
            LEAD_AGENT.to_owned()
        }
    };
    options.extend(chosen.clone());
    options.insert("channel_name".to_owned(), place.provider.into());
    options.remove("channel_user_id");
    if place.person.chars().count() <= MAX_PERSON_CHARS {
        options.insert("channel_user_id".to_owned(), place.person.into());
    }
    Ok(RunOptions {
        assistant,
        recursion_limit: config
            .get("recursion_limit")
            .and_then(Value::as_u64)
            .unwrap_or(RECURSION_LIMIT),
        options,
    })
}

fn agent_name(assistant: &str) -> Result<String, InvalidAgentName> {
    let name = assistant.trim().to_lowercase().replace('_', "-");
    let is_valid = !name.is_empty()
        && name
            .chars()
            .all(|character| character.is_ascii_alphanumeric() || character == '-');
    if is_valid {
        Ok(name)
    } else {
        Err(InvalidAgentName(assistant.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: RunPlace<'_> = RunPlace {
        provider: "slack",
        person: "U1",
        user_id: "ann",
    };

    fn layer(assistant: Option<&str>, config: Value, context: Value) -> SessionLayer {
        SessionLayer {
            assistant_id: assistant.map(str::to_owned),
            config: config.as_object().cloned().unwrap_or_default(),
            context: context.as_object().cloned().unwrap_or_default(),
            users: Default::default(),
        }
    }

    fn rules(general: SessionLayer, own: SessionLayer) -> Rules {
        Rules {
            session: [general, own],
            ..Rules::default()
        }
    }

    #[test]
    fn later_layers_replace_earlier_ones() {
        let mut own = layer(Some("my_painter"), json!({"recursion_limit": 7}), json!({}));
        own.users.insert(
            "U1".to_owned(),
            layer(None, json!({}), json!({"is_plan_mode": true})),
        );
        let general = layer(
            Some("lead_agent"),
            json!({"recursion_limit": 9, "configurable": {"model_name": "a"}}),
            json!({"thinking_enabled": false}),
        );
        let found = run_options(&rules(general, own), PLACE, &Map::new()).unwrap();
        assert_eq!(
            (found.assistant.as_str(), found.recursion_limit),
            ("lead_agent", 7)
        );
        assert_eq!(found.options["agent_name"], "my-painter");
        assert_eq!(found.options["model_name"], "a");
        assert_eq!(found.options["thinking_enabled"], false);
        assert_eq!(found.options["is_plan_mode"], true);
        assert_eq!(found.options["channel_user_id"], "U1");
    }

    #[test]
    fn invalid_agent_name_is_refused() {
        let own = layer(Some("../x"), json!({}), json!({}));
        let refused = run_options(&rules(SessionLayer::default(), own), PLACE, &Map::new());
        assert_eq!(refused, Err(InvalidAgentName("../x".to_owned())));
    }

    #[test]
    fn configured_person_is_never_believed() {
        let own = layer(None, json!({}), json!({"channel_user_id": "root"}));
        let person = "x".repeat(300);
        let place = RunPlace {
            person: &person,
            ..PLACE
        };
        let found = run_options(&rules(SessionLayer::default(), own), place, &Map::new()).unwrap();
        assert!(!found.options.contains_key("channel_user_id"));
    }
}

//! Assistants by name and by id.

use harness::runtime::agent::AssistantInfo;
use serde_json::json;
use uuid::Uuid;

use crate::dialect::Dialect;
use crate::error::{ApiError, Issue, truncated};

/// Namespace of the platform's ids of graph assistants.
const ASSISTANTS: Uuid = Uuid::from_u128(0x6ba7_b821_9dad_11d1_80b4_00c0_4fd4_30c8);

/// Returns the id of the assistant called `name`, which is the same on every server.
pub fn assistant_uuid(name: &str) -> Uuid {
    Uuid::new_v5(&ASSISTANTS, name.as_bytes())
}

/// Resolves a client's value to the assistant's name. The value is a name or an id, or absent if a
/// default is allowed.
pub fn resolve_assistant(
    sent: Option<&str>,
    known: &[AssistantInfo],
    dialect: Dialect,
) -> Result<String, ApiError> {
    let Some(sent) = sent else {
        return match known.first().filter(|_| dialect == Dialect::DeerFlow) {
            Some(first) => Ok(first.name.clone()),
            None => Err(ApiError::Unprocessable(
                "\"assistant_id\" is a required property".to_owned(),
            )),
        };
    };
    let uuid = Uuid::parse_str(sent).ok();
    let found = known.iter().find(|info| is_name_of(sent, &info.name));
    match (found, dialect, uuid) {
        (Some(found), _, _) => Ok(found.name.clone()),
        (None, Dialect::Platform, Some(_)) => Err(ApiError::RunTargetNotFound(sent.to_owned())),
        (None, Dialect::Platform, None) => {
            let names = known
                .iter()
                .map(|info| info.name.as_str())
                .collect::<Vec<_>>()
                .join(", ");
            Err(ApiError::Unprocessable(format!(
                "Invalid assistant: '{}'. Must be either:\n- A valid assistant UUID, or\n- One of the registered graphs: {names}",
                truncated(sent)
            )))
        }
        (None, Dialect::DeerFlow, _) => custom_agent(sent),
    }
}

/// Reports whether a client names this assistant, by its name or its id.
pub(crate) fn is_name_of(sent: &str, assistant: &str) -> bool {
    sent == assistant || Uuid::parse_str(sent).is_ok_and(|id| id == assistant_uuid(assistant))
}

/// Normalises the name of a custom agent: lower case, dashes. The resolver checks if the agent
/// exists.
fn custom_agent(sent: &str) -> Result<String, ApiError> {
    let name = sent.trim().to_ascii_lowercase().replace('_', "-");
    let fits = !name.is_empty()
        && name.len() <= 64
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if fits {
        return Ok(name);
    }
    let pattern = "^[a-z0-9-]{1,64}$";
    let loc = vec!["body".into(), "assistant_id".into()];
    let issue = Issue::new(
        "string_pattern_mismatch",
        loc,
        format!("String should match pattern '{pattern}'"),
        &sent.into(),
    );
    Err(ApiError::issue(issue.ctx(json!({ "pattern": pattern }))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Vec<AssistantInfo> {
        vec![AssistantInfo {
            name: "lead_agent".to_owned(),
            description: None,
        }]
    }

    #[test]
    fn the_id_of_a_name_is_the_recorded_one() {
        assert_eq!(
            assistant_uuid("agent").to_string(),
            "fe096781-5601-53d2-b2f6-0d3403f7e9ca"
        );
        assert_eq!(
            assistant_uuid("counter").to_string(),
            "09d6caf4-2ef3-5a8b-b1a7-114690ed5d45"
        );
    }

    #[test]
    fn assistant_is_resolved_by_name_id_or_default() {
        let id = assistant_uuid("lead_agent").to_string();
        for dialect in [Dialect::DeerFlow, Dialect::Platform] {
            assert_eq!(
                resolve_assistant(Some("lead_agent"), &known(), dialect),
                Ok("lead_agent".to_owned())
            );
            assert_eq!(
                resolve_assistant(Some(&id), &known(), dialect),
                Ok("lead_agent".to_owned())
            );
        }
        assert_eq!(
            resolve_assistant(None, &known(), Dialect::DeerFlow),
            Ok("lead_agent".to_owned())
        );
    }

    #[test]
    fn unknown_assistant_is_reported_per_dialect() {
        let status = |sent, dialect| {
            resolve_assistant(sent, &known(), dialect)
                .map_err(|error| error.status(dialect).as_u16())
        };
        assert_eq!(status(None, Dialect::Platform), Err(422));
        assert_eq!(status(Some("nope"), Dialect::Platform), Err(422));
        assert_eq!(
            status(
                Some("2bd06ce7-e763-4b9c-af17-60e5565443f1"),
                Dialect::Platform
            ),
            Err(404)
        );
        assert_eq!(
            status(Some("My_Agent"), Dialect::DeerFlow),
            Ok("my-agent".to_owned())
        );
        assert_eq!(status(Some("no/such agent"), Dialect::DeerFlow), Err(422));
    }
}

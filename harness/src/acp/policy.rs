//! What an agent is allowed, and what is told of what it was not.

use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    SelectedPermissionOutcome, StopReason,
};
use agent_client_protocol::{Error as ProtocolError, ErrorCode};

/// How much of a title is shown, in characters.
const LONGEST_TITLE: usize = 200;

/// The permissions that an agent asked for and did not get.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    count: u32,
    /// What the first was for.
    first: String,
}

/// The answer to a question for permission: the narrowest yes that is offered, where the agent gets what it asks for.
pub(super) fn outcome(options: &[PermissionOption], approves: bool) -> RequestPermissionOutcome {
    let offered = |kind: PermissionOptionKind| options.iter().find(|option| option.kind == kind);
    let yes = || {
        offered(PermissionOptionKind::AllowOnce)
            .or_else(|| offered(PermissionOptionKind::AllowAlways))
    };
    match yes().filter(|_| approves) {
        Some(option) => RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(
            option.option_id.clone(),
        )),
        None => RequestPermissionOutcome::Cancelled,
    }
}

/// The answer to a question for anything else: an agent has hands of its own.
pub(super) fn refusal(method: &str) -> ProtocolError {
    let why = "this client offers neither files nor terminals; work in the session's folder with your own tools";
    ProtocolError::new(ErrorCode::METHOD_NOT_FOUND, format!("{method}: {why}"))
}

impl Refusals {
    pub(super) fn add(&mut self, asked: &RequestPermissionRequest) {
        if self.count == 0 {
            let title = asked
                .tool_call
                .fields
                .title
                .as_deref()
                .unwrap_or("something without a name");
            self.first = title.chars().take(LONGEST_TITLE).collect();
        }
        self.count = self.count.saturating_add(1);
    }

    /// What a model is told of them.
    pub(super) fn note(&self, approves: bool) -> Option<String> {
        let why = if approves {
            "it offered no way to allow that"
        } else {
            "`auto_approve_permissions` is off for this agent, and nobody is there to ask"
        };
        let times = if self.count == 1 {
            "once".to_owned()
        } else {
            format!("{} times", self.count)
        };
        let first = &self.first;
        (self.count > 0).then(|| format!("[It asked {times} for a permission and did not get it, first for {first:?}: {why}.]"))
    }
}

/// What a model is told of an end that is not the task's.
pub(super) fn stop_note(stop: StopReason) -> Option<&'static str> {
    match stop {
        StopReason::EndTurn => None,
        StopReason::MaxTokens => Some("[It stopped early: its model reached its limit of tokens.]"),
        StopReason::MaxTurnRequests => Some("[It stopped early: it reached its limit of steps.]"),
        StopReason::Refusal => Some("[It refused to go on.]"),
        StopReason::Cancelled => Some("[It broke its work off.]"),
        _ => Some("[It stopped early and did not say why.]"),
    }
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::v1::schema::{ToolCallUpdate, ToolCallUpdateFields};

    use super::*;

    fn options(kinds: &[PermissionOptionKind]) -> Vec<PermissionOption> {
        kinds
            .iter()
            .map(|kind| PermissionOption::new(format!("{kind:?}"), "x", *kind))
            .collect()
    }

    fn chosen(kinds: &[PermissionOptionKind], approves: bool) -> Option<String> {
        match outcome(&options(kinds), approves) {
            RequestPermissionOutcome::Selected(selected) => Some(selected.option_id.to_string()),
            _ => None,
        }
    }

    #[test]
    fn the_narrowest_yes_is_given_and_only_where_it_is_configured() {
        use PermissionOptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
        let all = [RejectOnce, AllowAlways, AllowOnce, RejectAlways];
        assert_eq!(chosen(&all, true).as_deref(), Some("AllowOnce"));
        assert_eq!(
            chosen(&[RejectOnce, AllowAlways], true).as_deref(),
            Some("AllowAlways")
        );
        assert_eq!(
            (
                chosen(&[RejectOnce, RejectAlways], true),
                chosen(&all, false),
                chosen(&[], true)
            ),
            (None, None, None)
        );
    }

    #[test]
    fn a_model_hears_of_permissions_that_were_not_given() {
        let asked = |title: &str| {
            let call =
                ToolCallUpdate::new("c", ToolCallUpdateFields::new().title(title.to_owned()));
            RequestPermissionRequest::new("s", call, options(&[PermissionOptionKind::AllowOnce]))
        };
        let mut refusals = Refusals::default();
        assert_eq!(refusals.note(false), None);
        refusals.add(&asked("Run \"rm\""));
        let once = refusals.note(false).unwrap();
        assert!(
            once.starts_with("[It asked once for a permission and did not get it, first for \"Run \\\"rm\\\"\": `auto_approve"),
            "{once}"
        );
        refusals.add(&asked("other"));
        assert!(
            refusals.note(true).unwrap().contains("2 times")
                && refusals.note(true).unwrap().contains("no way to allow")
        );
    }
}

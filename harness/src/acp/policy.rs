//! Permission policy for ACP agents, and how denials are reported.

use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    SelectedPermissionOutcome, StopReason,
};
use agent_client_protocol::{Error as ProtocolError, ErrorCode};

/// Permissions that an agent requested and that were denied.
const MAX_TITLE_CHARS: usize = 200;

/// Permissions that an agent requested and did not get.
#[derive(Debug, Default)]
pub(super) struct DeniedPermissions {
    count: u32,
    /// Title of the first denied tool call.
    first: String,
}

/// Returns the response to a permission request: the narrowest approval that is offered if
/// `auto_approve` is set, else a cancellation.
pub(super) fn outcome(
    options: &[PermissionOption],
    auto_approve: bool,
) -> RequestPermissionOutcome {
    let offered = |kind: PermissionOptionKind| options.iter().find(|option| option.kind == kind);
    let approval = || {
        offered(PermissionOptionKind::AllowOnce)
            .or_else(|| offered(PermissionOptionKind::AllowAlways))
    };
    match approval().filter(|_| auto_approve) {
        Some(option) => RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(
            option.option_id.clone(),
        )),
        None => RequestPermissionOutcome::Cancelled,
    }
}

/// Returns the error for a request other than a permission request. This client serves neither
/// files nor terminals: an agent has its own tools.
pub(super) fn unsupported_method(method: &str) -> ProtocolError {
    let why = "this client offers neither files nor terminals; work in the session's folder with your own tools";
    ProtocolError::new(ErrorCode::METHOD_NOT_FOUND, format!("{method}: {why}"))
}

impl DeniedPermissions {
    pub(super) fn add(&mut self, request: &RequestPermissionRequest) {
        if self.count == 0 {
            let title = request
                .tool_call
                .fields
                .title
                .as_deref()
                .unwrap_or("something without a name");
            self.first = title.chars().take(MAX_TITLE_CHARS).collect();
        }
        self.count = self.count.saturating_add(1);
    }

    /// Returns the report of denials for the model, or `None` if there were none.
    pub(super) fn note(&self, auto_approve: bool) -> Option<String> {
        let why = if auto_approve {
            "it offered no option that allows the request"
        } else {
            "`auto_approve_permissions` is off for this agent, and there is no user to ask"
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

/// Returns a note for the model if a session stopped before the task was finished.
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

    fn chosen(kinds: &[PermissionOptionKind], auto_approve: bool) -> Option<String> {
        match outcome(&options(kinds), auto_approve) {
            RequestPermissionOutcome::Selected(selected) => Some(selected.option_id.to_string()),
            _ => None,
        }
    }

    #[test]
    fn permission_gets_narrowest_approval_if_configured() {
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
    fn denied_permissions_are_reported_to_the_model() {
        let request = |title: &str| {
            let call =
                ToolCallUpdate::new("c", ToolCallUpdateFields::new().title(title.to_owned()));
            RequestPermissionRequest::new("s", call, options(&[PermissionOptionKind::AllowOnce]))
        };
        let mut denied = DeniedPermissions::default();
        assert_eq!(denied.note(false), None);
        denied.add(&request("Run \"rm\""));
        let once = denied.note(false).unwrap();
        assert!(
            once.starts_with("[It asked once for a permission and did not get it, first for \"Run \\\"rm\\\"\": `auto_approve"),
            "{once}"
        );
        denied.add(&request("other"));
        assert!(
            denied.note(true).unwrap().contains("2 times")
                && denied.note(true).unwrap().contains("no option that allows")
        );
    }
}

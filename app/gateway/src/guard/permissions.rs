//! Permissions of routes about threads and runs, by the role of the caller.
//!
//! The permission follows from the matched route, not from the path as sent: an encoded path or one
//! in other case matches no route, or the same one.

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use harness::config::RoleRules;
use harness::runtime::actor_context::current;

use crate::error::ApiError;
use crate::ports::AccessControl;

const READ: &str = "threads:read";
const WRITE: &str = "threads:write";
const DELETE: &str = "threads:delete";
const CREATE_RUNS: &str = "runs:create";
const READ_RUNS: &str = "runs:read";
const CANCEL_RUNS: &str = "runs:cancel";

/// Refuses requests that the role of the caller does not permit.
pub(crate) async fn check_permission<F: Future<Output = Response>>(
    access: &dyn AccessControl,
    request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response {
    let template = request.extensions().get::<MatchedPath>();
    let needed = template.map_or_else(Vec::new, |template| {
        permissions(request.method(), template.as_str(), request.uri().query())
    });
    match refusal(access, &needed).await {
        Some(error) => error.into_response(),
        None => next(request).await,
    }
}

async fn refusal(access: &dyn AccessControl, needed: &[&str]) -> Option<ApiError> {
    if needed.is_empty() {
        return None;
    }
    match rules_of_caller(access).await {
        Ok(None) => None,
        Ok(Some(rules)) => needed
            .iter()
            .find(|permission| !rules.routes.allows(permission))
            .map(|permission| ApiError::Forbidden(format!("Permission denied: {permission}"))),
        Err(error) => Some(error),
    }
}

/// Returns the rules of the caller's role; `None` if roles restrict nothing.
pub(crate) async fn rules_of_caller(
    access: &dyn AccessControl,
) -> Result<Option<RoleRules>, ApiError> {
    match current() {
        Some(actor) => Ok(access.rules_of(&actor).await?),
        None => Ok(None),
    }
}

/// Returns the permissions that a route needs.
fn permissions(method: &Method, template: &str, query: Option<&str>) -> Vec<&'static str> {
    let path = ["/api/langgraph", "/api"]
        .iter()
        .find_map(|prefix| template.strip_prefix(prefix))
        .unwrap_or(template);
    let parts: Vec<&str> = path
        .split('/')
        .skip(1)
        .filter(|part| !part.is_empty())
        .collect();
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    let one = |permission| vec![permission];
    match parts.as_slice() {
        ["threads", "search" | "count"] => one(READ),
        ["threads", "prune"] => one(DELETE),
        ["threads"] => one(WRITE),
        ["threads", "{thread_id}"] if *method == Method::DELETE => one(DELETE),
        ["threads", "{thread_id}", rest @ ..] => of_thread(method, is_read, rest, query),
        ["runs", rest @ ..] => one(of_runs(is_read, rest)),
        ["scheduled-tasks", ..] if is_read => one(READ_RUNS),
        ["scheduled-tasks", ..] => one(CREATE_RUNS),
        _ => Vec::new(),
    }
}

/// Permissions of routes below a thread.
fn of_thread(
    method: &Method,
    is_read: bool,
    rest: &[&str],
    query: Option<&str>,
) -> Vec<&'static str> {
    match rest {
        ["runs", _, "feedback", ..] if !is_read => vec![WRITE],
        // The route joins a run; its query can also cancel it.
        ["runs", run, "stream"] if run.starts_with('{') => {
            let cancels = query.is_some_and(|query| names(query, "action"));
            let cancel = cancels.then_some(CANCEL_RUNS);
            std::iter::once(READ_RUNS).chain(cancel).collect()
        }
        ["runs", run] if run.starts_with('{') && *method == Method::DELETE => vec![DELETE],
        ["runs", run, "join" | "wait"] if run.starts_with('{') => vec![READ_RUNS],
        ["runs", rest @ ..] => vec![of_runs(is_read, rest)],
        ["scheduled-tasks", ..] | ["stream"] => vec![READ_RUNS],
        ["history"] | ["state", "checkpoint"] => vec![READ],
        _ if is_read => vec![READ],
        _ => vec![WRITE],
    }
}

/// Permission of routes below `runs`.
fn of_runs(is_read: bool, rest: &[&str]) -> &'static str {
    match rest {
        _ if is_read => READ_RUNS,
        ["cancel"] | [_, "cancel"] => CANCEL_RUNS,
        ["crons", "search" | "count"] => READ_RUNS,
        _ => CREATE_RUNS,
    }
}

/// Reports whether a query has a parameter of this name, however its characters are encoded.
fn names(query: &str, name: &str) -> bool {
    url_pairs(query).any(|key| key == name)
}

fn url_pairs(query: &str) -> impl Iterator<Item = String> {
    let mut url = reqwest::Url::parse("query://query").ok();
    if let Some(url) = &mut url {
        url.set_query(Some(query));
    }
    let keys: Vec<String> = url
        .iter()
        .flat_map(|url| url.query_pairs())
        .map(|(key, _)| key.into_owned())
        .collect();
    keys.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needed(method: &str, template: &str) -> String {
        let (template, query) = template.split_once('?').unwrap_or((template, ""));
        let method = method.parse().expect("a method");
        permissions(&method, template, Some(query)).join(" ")
    }

    #[test]
    fn routes_need_permission_of_their_effect() {
        for (method, template, permission) in [
            ("GET", "/threads/{thread_id}", READ),
            ("POST", "/threads", WRITE),
            ("POST", "/threads/search", READ),
            ("PATCH", "/threads/{thread_id}", WRITE),
            ("DELETE", "/threads/{thread_id}", DELETE),
            ("POST", "/threads/prune", DELETE),
            ("POST", "/threads/{thread_id}/history", READ),
            ("POST", "/threads/{thread_id}/state", WRITE),
            ("POST", "/threads/{thread_id}/uploads", WRITE),
            ("GET", "/threads/{thread_id}/artifacts/{*path}", READ),
            ("POST", "/threads/{thread_id}/runs", CREATE_RUNS),
            ("POST", "/threads/{thread_id}/runs/stream", CREATE_RUNS),
            ("POST", "/threads/{thread_id}/runs/wait", CREATE_RUNS),
            ("POST", "/threads/{thread_id}/runs/crons", CREATE_RUNS),
            ("GET", "/threads/{thread_id}/runs", READ_RUNS),
            (
                "GET",
                "/threads/{thread_id}/runs/{run_id}/stream",
                READ_RUNS,
            ),
            (
                "POST",
                "/threads/{thread_id}/runs/{run_id}/cancel",
                CANCEL_RUNS,
            ),
            ("DELETE", "/threads/{thread_id}/runs/{run_id}", DELETE),
            ("POST", "/runs/stream", CREATE_RUNS),
            ("POST", "/runs/batch", CREATE_RUNS),
            ("POST", "/runs/cancel", CANCEL_RUNS),
            ("POST", "/runs/crons/search", READ_RUNS),
            ("DELETE", "/runs/crons/{cron_id}", CREATE_RUNS),
            ("POST", "/scheduled-tasks/{task_id}/trigger", CREATE_RUNS),
            ("GET", "/models", ""),
            ("GET", "/v1/auth/me", ""),
        ] {
            for prefix in ["", "/api", "/api/langgraph"] {
                let found = needed(method, &format!("{prefix}{template}"));
                assert_eq!(found, permission, "{method} {prefix}{template}");
            }
        }
    }

    #[test]
    fn joining_with_cancel_needs_both_permissions() {
        let route = "/threads/{thread_id}/runs/{run_id}/stream";
        assert_eq!(needed("POST", route), READ_RUNS);
        for query in ["action=interrupt", "wait=1&%61ction=rollback"] {
            let both = format!("{READ_RUNS} {CANCEL_RUNS}");
            assert_eq!(needed("POST", &format!("{route}?{query}")), both);
        }
    }
}

//! Sessions in cookies, CSRF tokens and internal callers, under each requirement.

use axum::http::Method;
use chrono::TimeDelta;
use deerflow_domain::accounts::{AccountChange, AuditAction, NewAuditEntry, Role, SessionsAfter};
use serde_json::Value;

use super::fixture::{Person, Stores, authenticator, request};
use super::*;
use crate::dialect::Dialect;
use crate::guard::cookies::CookieScope;
use crate::guard::paths::class_of;
use crate::guard::trusted_proxies::TrustedProxies;
use crate::guard::web_client::WebClient;

const PATH: &str = "/api/threads";

/// Returns `source user [admin]` of the actor, or status and code or text of the error.
async fn ask(
    authenticator: &Authenticator,
    method: &str,
    path: &str,
    headers: &[(&'static str, &str)],
) -> Result<String, (u16, String)> {
    let request = request(method, path, headers);
    let access = authenticator.access(class_of(path), &request, None).await;
    let access = access.map_err(|error| {
        let detail = detail(&error);
        let text = detail["code"].as_str().or(detail.as_str());
        (
            error.status(Dialect::DeerFlow).as_u16(),
            text.unwrap_or_default().to_owned(),
        )
    })?;
    let actor = match access {
        Access::Open(actor) | Access::Public(actor) | Access::Program(actor) => actor,
        Access::Person(session) => session.actor(),
    };
    let source = actor.auth_source.unwrap_or_default();
    Ok([vec![source, actor.user_id], actor.scopes]
        .concat()
        .join(" "))
}

fn detail(error: &ApiError) -> Value {
    error.detail(Dialect::DeerFlow)
}

fn cookies(person: &Person) -> String {
    let Person { token, csrf, .. } = person;
    format!("access_token={token}; csrf_token={csrf}; deerflow_session_persistent=1")
}

async fn disable(stores: &Stores, id: &str) {
    let at = stores.clock.now();
    let change = AccountChange {
        disabled: Some(true),
        ..AccountChange::default()
    };
    let entry = NewAuditEntry::new(AuditAction::AccountDisabled, at);
    let accounts = &stores.accounts.accounts;
    let changed = accounts.change(id, change, SessionsAfter::EndAll, vec![entry], at);
    changed.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn loopback_is_open_until_the_first_account() {
    let (auth, stores) = authenticator(KeyRule::Optional);
    let open = Ok("loopback default admin".to_owned());
    assert_eq!(ask(&auth, "POST", PATH, &[]).await, open);
    let stale = [("cookie", "access_token=old")];
    assert_eq!(ask(&auth, "POST", PATH, &stale).await, open);
    let ann = stores.sign_in("ann@example.org", Role::User).await;
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    let refused = Err((401, "not_authenticated".to_owned()));
    assert_eq!(ask(&auth, "GET", PATH, &[]).await, refused);
    let cookies = cookies(&ann);
    let signed_in = ask(&auth, "GET", PATH, &[("cookie", &cookies)]).await;
    assert_eq!(signed_in, Ok(format!("session {}", ann.id)));
    let public = Ok("public default".to_owned());
    for path in ["/ok", "/api/v1/auth/setup-status", "/api/v1/auth/register"] {
        assert_eq!(ask(&auth, "GET", path, &[]).await, public, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn session_of_another_nodes_first_account_is_read_at_once() {
    let (auth, stores) = authenticator(KeyRule::Optional);
    let open = Ok("loopback default admin".to_owned());
    assert_eq!(ask(&auth, "GET", PATH, &[]).await, open);
    // The stores are shared with the other node, which does not notify this one.
    let ann = stores.sign_in("ann@example.org", Role::User).await;
    let signed_in = ask(&auth, "GET", PATH, &[("cookie", &cookies(&ann))]).await;
    assert_eq!(signed_in, Ok(format!("session {}", ann.id)));
    let refused = Err((401, "not_authenticated".to_owned()));
    assert_eq!(ask(&auth, "GET", PATH, &[]).await, refused);
}

#[tokio::test]
async fn refusal_of_a_program_explains_how_to_create_a_key() {
    let (auth, _) = authenticator(KeyRule::Required);
    let request = request("GET", PATH, &[]);
    let error = auth.access(PathClass::Protected, &request, None).await;
    let error = error.unwrap_err();
    let detail = detail(&error);
    assert_eq!(detail["message"], "Authentication required");
    assert!(detail["hint"].to_string().contains("deerflow keys create"));
    assert!(
        error
            .detail(Dialect::Platform)
            .to_string()
            .contains("deerflow keys create")
    );
}

#[tokio::test]
async fn administrators_have_their_scope_by_role() {
    let (auth, stores) = authenticator(KeyRule::Required);
    let admin = stores.sign_in("root@example.org", Role::Admin).await;
    let ann = stores.sign_in("ann@example.org", Role::User).await;
    let actor = async |person| ask(&auth, "GET", PATH, &[("cookie", &cookies(person))]).await;
    assert_eq!(actor(&admin).await, Ok("session default admin".to_owned()));
    assert_eq!(actor(&ann).await, Ok(format!("session {}", ann.id)));
}

#[tokio::test]
async fn unsafe_request_needs_csrf_token_of_its_session() {
    for (rule, prefix) in [
        (KeyRule::Required, ""),
        (KeyRule::Required, "/api"),
        (KeyRule::Required, "/api/langgraph"),
        (KeyRule::Off, "/api"),
    ] {
        let path = format!("{prefix}/threads");
        let (auth, stores) = authenticator(rule);
        let ann = stores.sign_in("ann@example.org", Role::User).await;
        let bob = stores.sign_in("bob@example.org", Role::User).await;
        let own = cookies(&ann);
        let foreign = format!("access_token={}; csrf_token={}", ann.token, bob.csrf);
        let alone = format!("access_token={}", ann.token);
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            let ask = async |cookie: &str, token: Option<&str>| {
                let token = token.map(|token| ("x-csrf-token", token));
                let headers: Vec<_> = token.into_iter().chain([("cookie", cookie)]).collect();
                ask(&auth, method, &path, &headers).await
            };
            assert!(ask(&own, Some(&ann.csrf)).await.is_ok(), "{path}");
            for (cookie, token) in [
                (&own, None),
                (&own, Some(&*bob.csrf)),
                (&foreign, Some(&*bob.csrf)),
                (&foreign, Some(&*ann.csrf)),
                (&alone, Some(&*ann.csrf)),
            ] {
                let (status, text) = ask(cookie, token).await.unwrap_err();
                assert!(
                    status == 403 && text.starts_with("CSRF token"),
                    "{path}: {text}"
                );
            }
        }
        assert!(
            ask(&auth, "GET", &path, &[("cookie", &alone)])
                .await
                .is_ok()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn refused_session_names_its_cause() {
    let (auth, stores) = authenticator(KeyRule::Required);
    let ann = stores.sign_in("ann@example.org", Role::User).await;
    let bob = stores.sign_in("bob@example.org", Role::User).await;
    let code = async |token: &str| {
        let cookie = format!("access_token={token}");
        ask(&auth, "GET", PATH, &[("cookie", &cookie)]).await
    };
    let unknown = "A".repeat(43);
    for (token, expected) in [
        ("", "not_authenticated"),
        ("abc", "token_invalid"),
        (&*unknown, "token_invalid"),
        (&ann.token[..42], "token_invalid"),
    ] {
        assert_eq!(
            code(token).await,
            Err((401, expected.to_owned())),
            "{token}"
        );
    }
    assert!(code(&ann.token).await.is_ok());
    disable(&stores, &ann.id).await;
    tokio::time::advance(deerflow_accounts::MAX_AGE).await;
    assert_eq!(
        code(&ann.token).await,
        Err((401, "token_invalid".to_owned()))
    );
    assert!(code(&bob.token).await.is_ok());
    stores.clock.advance(TimeDelta::days(7));
    assert_eq!(
        code(&bob.token).await,
        Err((401, "token_expired".to_owned()))
    );
}

#[tokio::test(start_paused = true)]
async fn disabled_authentication_reads_valid_sessions() {
    let (auth, stores) = authenticator(KeyRule::Off);
    let default = Ok("disabled default admin".to_owned());
    assert_eq!(ask(&auth, "POST", PATH, &[]).await, default);
    let wrong = [("cookie", "access_token=x"), ("x-api-key", "x")];
    assert_eq!(ask(&auth, "POST", PATH, &wrong).await, default);
    let ann = stores.sign_in("ann@example.org", Role::User).await;
    let cookies = cookies(&ann);
    let signed_in = ask(&auth, "GET", PATH, &[("cookie", &cookies)]).await;
    assert_eq!(signed_in, Ok(format!("session {}", ann.id)));
    assert_eq!(ask(&auth, "POST", PATH, &[]).await, default);
}

#[tokio::test]
async fn internal_caller_acts_for_its_owner() {
    for rule in [KeyRule::Off, KeyRule::Optional, KeyRule::Required] {
        let (auth, _) = authenticator(rule);
        let headers = [
            ("x-deerflow-internal-token", "internal-token"),
            ("x-deerflow-owner-user-id", "ann"),
        ];
        assert_eq!(
            ask(&auth, "POST", PATH, &headers).await,
            Ok("internal ann".to_owned())
        );
        let wrong = [("x-deerflow-internal-token", "x")];
        assert_eq!(ask(&auth, "POST", PATH, &wrong).await.unwrap_err().0, 401);
        assert!(ask(&auth, "GET", "/health", &wrong).await.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn use_with_three_cookies_extends_once_an_hour() {
    let (auth, stores) = authenticator(KeyRule::Required);
    let ann = stores.sign_in("ann@example.org", Role::User).await;
    let three = cookies(&ann);
    let client = WebClient::of(
        None,
        Some("localhost"),
        &Default::default(),
        &TrustedProxies::default(),
    );
    let renewed = async |cookie: &str| {
        let request = request("GET", PATH, &[("cookie", cookie)]);
        let session = auth
            .sessions()
            .find(&request.headers)
            .await
            .unwrap()
            .unwrap();
        auth.sessions()
            .check_csrf(&Method::GET, &request.headers, &session)
            .unwrap();
        let cookies = session.renewed_cookies(CookieScope::of(&client, false));
        cookies.iter().any(|cookie| {
            let cookie = cookie.to_str().unwrap();
            cookie.starts_with(&format!("access_token={};", ann.token))
                && cookie.contains("Max-Age")
        })
    };
    assert!(!renewed(&three).await);
    stores.clock.advance(TimeDelta::seconds(3_601));
    assert!(!renewed(&format!("access_token={}", ann.token)).await);
    assert!(renewed(&three).await);
    assert!(!renewed(&three).await);
    let hash = deerflow_domain::accounts::TokenHash::of(&ann.token);
    let (session, _) = stores.accounts.sessions.find(&hash).await.unwrap().unwrap();
    assert_eq!(
        session.last_used_at - session.created_at,
        TimeDelta::seconds(3_601)
    );
}

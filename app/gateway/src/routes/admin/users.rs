//! `/v1/admin/users`: accounts of all people, for administrators.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use deerflow_accounts::{DeletionError, NewUser, SignInError, UserChange};
use deerflow_domain::accounts::{Account, AccountError, AccountQuery};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::ADMINS_ONLY;
use crate::error::{ApiError, truncated};
use crate::extract::{Body, Ids, Query};
use crate::guard::auth::require_admin;
use crate::requests::bodies::{NewUserBody, UserPatchBody};
use crate::routes::auth::failures::refusal;
use crate::routes::auth::visitor::Visitor;
use crate::routes::{App, JsonResult, ResponseResult, run_to_completion};
use crate::state::SecurityState;

/// Maximum and default number of listed users.
pub(crate) const MAX_USERS: u32 = 1_000;
pub(crate) const DEFAULT_USERS: u32 = 50;
/// Largest offset that the stores accept.
const MAX_OFFSET: u64 = i64::MAX as u64;

/// `GET /v1/admin/users`: accounts in order of their creation.
pub(crate) async fn list(State(security): State<SecurityState>, query: Query) -> JsonResult {
    require_admin(ADMINS_ONLY)?;
    let limit = query.number("limit", 1..=MAX_USERS.into())?;
    let limit = limit.unwrap_or(DEFAULT_USERS.into());
    let offset = query.number("offset", 0..=MAX_OFFSET)?.unwrap_or(0);
    let selection = AccountQuery {
        q: query.get("q").map(str::to_owned),
        limit,
        offset,
        ..AccountQuery::default()
    };
    let page = security.sign_in.stores.accounts.list(&selection).await?;
    let users: Vec<Value> = page.accounts.iter().map(Account::to_json).collect();
    Ok(Json(json!({
        "users": users,
        "total": page.total,
        "limit": limit,
        "offset": offset,
    })))
}

/// `POST /v1/admin/users`: creates an account. A generated password is in the response only.
pub(crate) async fn create(
    State(security): State<SecurityState>,
    visitor: Visitor,
    body: Body<NewUserBody>,
) -> ResponseResult {
    require_admin(ADMINS_ONLY)?;
    let body = body.valid()?;
    let new = NewUser {
        email: body.email,
        role: body.role.0,
        password: body.password.map(Into::into),
    };
    let sign_in = &security.sign_in;
    let operator = visitor.operator();
    let created = sign_in.service.create_user(&new, &operator).await;
    let created = created.map_err(managed)?;
    sign_in.presence.created();
    let mut shown = created.account.to_json();
    if let Some(password) = &created.generated {
        shown["password"] = password.expose_secret().into();
    }
    Ok((StatusCode::CREATED, Json(shown)).into_response())
}

/// `PATCH /v1/admin/users/{user_id}`: changes role and state.
pub(crate) async fn change(
    State(security): State<SecurityState>,
    visitor: Visitor,
    ids: Ids,
    body: Body<UserPatchBody>,
) -> JsonResult {
    require_admin(ADMINS_ONLY)?;
    let body = body.valid()?;
    let change = UserChange {
        role: body.role.map(|role| role.0),
        disabled: body.disabled,
    };
    let id = ids.text("user_id");
    let service = &security.sign_in.service;
    let changed = service.change_user(id, change, &visitor.operator()).await;
    let changed = changed.map_err(|error| match error {
        SignInError::NotFound => unknown(id),
        error => managed(error),
    })?;
    Ok(Json(changed.to_json()))
}

/// `DELETE /v1/admin/users/{user_id}`: deletes an account with everything of its user.
pub(crate) async fn delete(State(state): App, visitor: Visitor, ids: Ids) -> JsonResult {
    require_admin(ADMINS_ONLY)?;
    let id = ids.text("user_id").to_owned();
    let (sign_in, operator) = (state.security.sign_in.clone(), visitor.operator());
    run_to_completion(&state, "delete an account", async move {
        let deleted = sign_in.deletion.delete(&id, &operator).await;
        let deleted = deleted.map_err(|error| match error {
            DeletionError::Refused(AccountError::NotFound) => unknown(&id),
            DeletionError::Refused(error) => managed(error.into()),
            incomplete @ DeletionError::Incomplete(_) => {
                tracing::error!(error = %incomplete, user = id, "account was not deleted completely");
                ApiError::Unavailable(crate::error::capitalized(&incomplete.to_string()))
            }
        })?;
        let kinds = deleted.iter();
        let counts = kinds.map(|data| (data.kind.clone(), Value::from(data.count)));
        Ok(Json(json!({
            "id": id,
            "deleted": counts.collect::<serde_json::Map<_, _>>(),
        })))
    })
    .await
}

/// Converts a refusal of the management of accounts.
fn managed(error: SignInError) -> ApiError {
    match error {
        // A body of this route is no sign-in: the web UI has no text for its codes.
        SignInError::EmailTaken => {
            ApiError::Conflict("An account with this e-mail address exists.".to_owned())
        }
        error => refusal(error, "password"),
    }
}

fn unknown(id: &str) -> ApiError {
    ApiError::NotFound(format!("User {} not found", truncated(id)))
}

//! Routes under `/v1/auth`.

use super::operations::{read, remove, send};
use crate::openapi::groups::SIGN_IN;
use crate::openapi::{Operation, Routes, delete, get, post, text};
use crate::requests::bodies::{NewAccountBody, NewKeyBody, PasswordChangeBody, SignInForm};
use crate::responses::documented::DeerFlowAnswer;
use crate::routes::auth;

pub(super) fn routes() -> Routes {
    of_everybody()
        .merge(through_providers())
        .merge(of_people())
        .merge(keys())
}

/// Routes without a session.
fn of_everybody() -> Routes {
    let login = send(
        SIGN_IN,
        "/v1/auth/login/local",
        "sign_in",
        "Signs in with e-mail and password.",
    );
    let register = post(
        "/v1/auth/register",
        "register",
        "Creates an account and signs in.",
    )
    .tag(SIGN_IN);
    let initialize = post(
        "/v1/auth/initialize",
        "initialize",
        "Creates the first administrator and signs in.",
    )
    .tag(SIGN_IN);
    let logout = send(SIGN_IN, "/v1/auth/logout", "sign_out", "Ends the session.");
    let status = read(
        SIGN_IN,
        "/v1/auth/setup-status",
        "get_setup_status",
        "Reports whether an administrator exists and people may register.",
    );
    Routes::default()
        .routes(
            login
                .urlencoded_form::<SignInForm>()
                .fails_with(&[503])
                .handled_by(auth::login),
        )
        .routes(
            register
                .body::<NewAccountBody>()
                .returns_with_status::<DeerFlowAnswer>(201, "The account.")
                .fails_with(&[503])
                .handled_by(auth::register),
        )
        .routes(
            initialize
                .body::<NewAccountBody>()
                .returns_with_status::<DeerFlowAnswer>(201, "The account.")
                .fails_with(&[409, 503])
                .handled_by(auth::initialize),
        )
        .routes(logout.handled_by(auth::logout))
        .routes(status.handled_by(auth::setup_status))
}

/// Routes of a sign-in through an identity provider.
fn through_providers() -> Routes {
    let list = read(
        SIGN_IN,
        "/v1/auth/providers",
        "list_auth_providers",
        "Lists the sign-in providers.",
    );
    let visit = |path, id: &'static str, summary: &'static str| -> Operation {
        get(path, id, summary)
            .tag(SIGN_IN)
            .names()
            .returns_empty(302, "The browser goes on to `Location`.")
            .fails_with(&[502, 503])
    };
    let start = visit(
        "/v1/auth/oauth/{provider}",
        "start_provider_sign_in",
        "Sends the browser to an identity provider.",
    )
    .query("next", text(), "Path of the web UI after the sign-in.")
    .query(
        "remember_me",
        text(),
        "`false` if the session ends when the browser closes.",
    );
    let end = visit(
        "/v1/auth/callback/{provider}",
        "complete_provider_sign_in",
        "Completes a sign-in at an identity provider.",
    )
    .query("code", text(), "Authorization code.")
    .query("state", text(), "State of the sign-in.")
    .query("iss", text(), "Issuer.")
    .query("error", text(), "Error code of the provider.");
    Routes::default()
        .routes(list.handled_by(auth::list_providers))
        .routes(start.handled_by(auth::start_at_provider))
        .routes(end.handled_by(auth::provider_callback))
}

/// Routes of signed-in people.
fn of_people() -> Routes {
    let change = send(
        SIGN_IN,
        "/v1/auth/change-password",
        "change_password",
        "Changes the password and ends all other sessions.",
    );
    let end = delete(
        "/v1/auth/sessions/{session_id}",
        "end_session",
        "Ends a session of the caller.",
    )
    .tag(SIGN_IN)
    .names();
    Routes::default()
        .routes(
            read(
                SIGN_IN,
                "/v1/auth/me",
                "get_me",
                "Returns the current user.",
            )
            .handled_by(auth::me),
        )
        .routes(
            change
                .body::<PasswordChangeBody>()
                .fails_with(&[503])
                .handled_by(auth::change_password),
        )
        .routes(
            read(
                SIGN_IN,
                "/v1/auth/sessions",
                "list_sessions",
                "Lists the sessions of the caller.",
            )
            .handled_by(auth::list_sessions),
        )
        .routes(
            remove(
                SIGN_IN,
                "/v1/auth/sessions",
                "end_other_sessions",
                "Ends all sessions of the caller but the current one.",
            )
            .handled_by(auth::end_other_sessions),
        )
        .routes(
            end.returns_empty(204, "Ended.")
                .handled_by(auth::end_session),
        )
}

/// Routes about keys of programs.
fn keys() -> Routes {
    let create = post("/v1/auth/keys", "create_key", "Creates an API key.").tag(SIGN_IN);
    let revoke = delete(
        "/v1/auth/keys/{key_id}",
        "revoke_key",
        "Revokes an API key of the caller.",
    )
    .tag(SIGN_IN)
    .names();
    Routes::default()
        .routes(
            read(
                SIGN_IN,
                "/v1/auth/keys",
                "list_keys",
                "Lists the API keys of the caller.",
            )
            .handled_by(auth::list_keys),
        )
        .routes(
            create
                .body::<NewKeyBody>()
                .returns_with_status::<DeerFlowAnswer>(201, "The key, which is shown once.")
                .fails_with(&[409])
                .handled_by(auth::create_key),
        )
        .routes(
            revoke
                .returns_empty(204, "Revoked.")
                .handled_by(auth::revoke_key),
        )
}

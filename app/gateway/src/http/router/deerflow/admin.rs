//! Routes under `/v1/admin`.

use super::operations::{change, read, remove};
use crate::openapi::{ADMIN as TAG, Routes, number, post, text, whole_number};
use crate::requests::bodies::{NewUserBody, UserPatchBody};
use crate::responses::documented::DeerFlowAnswer;
use crate::routes::admin;

const USERS: &str = "/v1/admin/users";
const USER: &str = "/v1/admin/users/{user_id}";

pub(super) fn routes() -> Routes {
    let list = read(
        TAG,
        USERS,
        "list_users",
        "Lists accounts in order of their creation.",
    );
    let create = post(USERS, "create_user", "Creates an account.").tag(TAG);
    let patch = change(
        TAG,
        USER,
        "change_user",
        "Changes role and state of an account.",
    );
    let delete = remove(
        TAG,
        USER,
        "delete_user",
        "Deletes an account with everything of its user.",
    );
    let audit = read(
        TAG,
        "/v1/admin/audit",
        "list_audit",
        "Lists entries of the audit log, newest first.",
    );
    Routes::default()
        .routes(
            list.query(
                "q",
                text(),
                "Only accounts with this text in their e-mail or with this id.",
            )
            .query(
                "limit",
                number(1, admin::MAX_USERS, admin::DEFAULT_USERS),
                "Maximum number of results.",
            )
            .query("offset", whole_number(0), "Number of results to skip.")
            .handled_by(admin::list_users),
        )
        .routes(
            create
                .body::<NewUserBody>()
                .returns_with_status::<DeerFlowAnswer>(
                    201,
                    "The account, with its password if it was generated.",
                )
                .fails_with(&[409, 503])
                .handled_by(admin::create_user),
        )
        .routes(
            patch
                .body::<UserPatchBody>()
                .fails_with(&[409])
                .handled_by(admin::change_user),
        )
        .routes(
            delete
                .fails_with(&[409, 503])
                .handled_by(admin::delete_user),
        )
        .routes(
            audit
                .query("user", text(), "Only entries with this actor or object.")
                .query("action", text(), "Only entries of this action.")
                .query(
                    "before",
                    whole_number(0),
                    "Only entries before this position.",
                )
                .query(
                    "limit",
                    number(1, admin::MAX_ENTRIES, admin::DEFAULT_ENTRIES),
                    "Maximum number of results.",
                )
                .handled_by(admin::list_audit),
        )
}

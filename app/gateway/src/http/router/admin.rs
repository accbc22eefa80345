//! Routes under `/admin`.

use crate::openapi::{ADMIN as TAG, Routes, flag, get, number, post};
use crate::responses::documented::WebhookCalls;
use crate::routes::admin;

/// Routes of both dialects.
pub(super) fn shared() -> Routes {
    let list = get(
        "/admin/webhooks",
        "list_webhook_calls",
        "Lists undelivered webhook calls of all users.",
    )
    .tag(TAG);
    let resend = post(
        "/admin/webhooks/{run_id}/resend",
        "resend_webhook_call",
        "Resends the webhook call of a run.",
    )
    .tag(TAG)
    .ids();
    Routes::default()
        .routes(
            list.query("dead", flag(), "Only dead letters.")
                .query(
                    "limit",
                    number(1, admin::MAX_CALLS, admin::DEFAULT_CALLS),
                    "Maximum number of results.",
                )
                .returns::<WebhookCalls>("Undelivered calls, those of the latest runs first.")
                .handled_by(admin::webhooks),
        )
        .routes(
            resend
                .returns_empty(202, "Resend scheduled.")
                .handled_by(admin::resend_webhook),
        )
}

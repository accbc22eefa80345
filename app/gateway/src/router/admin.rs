//! `/admin`.

use crate::openapi::{ADMIN as TAG, Routes, flag, get, number, post};
use crate::routes::admin;

/// In both dialects.
pub(super) fn shared() -> Routes {
    let list = get(
        "/admin/webhooks",
        "list_webhook_calls",
        "Lists calls of webhooks that nobody took yet, of all users.",
    )
    .tag(TAG);
    let resend = post(
        "/admin/webhooks/{run_id}/resend",
        "resend_webhook_call",
        "Has the call of a run's end sent again.",
    )
    .tag(TAG)
    .ids();
    Routes::default()
        .routes(
            list.query("dead", flag(), "Only those that are not tried any more.")
                .query(
                    "limit",
                    number(1, admin::MOST_CALLS, admin::USUAL_CALLS),
                    "How many at most.",
                )
                .answers("WebhookCalls", "Those of the last ends first.")
                .by(admin::webhooks),
        )
        .routes(
            resend
                .answers_empty(202, "It will be sent.")
                .by(admin::resend_webhook),
        )
}

//! Routes of features that this server does not have.

use super::operations::{read, send};
use crate::openapi::Routes;
use crate::openapi::groups::SETTINGS;
use crate::routes::absent_features;

/// Operations of the Lark integration: path, operation id and summary.
const LARK: [(&str, &str, &str); 5] = [
    (
        "/integrations/lark/config/start",
        "start_lark_configuration",
        "Begins the setup of a Lark app.",
    ),
    (
        "/integrations/lark/config/complete",
        "complete_lark_configuration",
        "Ends the setup of a Lark app.",
    ),
    (
        "/integrations/lark/config/credentials",
        "put_lark_credentials",
        "Stores the credentials of a Lark app.",
    ),
    (
        "/integrations/lark/auth/start",
        "start_lark_authorization",
        "Begins the authorization of a Lark account.",
    ),
    (
        "/integrations/lark/auth/complete",
        "complete_lark_authorization",
        "Ends the authorization of a Lark account.",
    ),
];

pub(super) fn routes() -> Routes {
    let install = send(
        SETTINGS,
        "/integrations/lark/install",
        "install_lark",
        "Installs the Lark integration.",
    );
    let navigate = send(
        SETTINGS,
        "/threads/{thread_id}/browser/navigate",
        "navigate_browser",
        "Opens an address in the live browser of a thread.",
    );
    let routes = Routes::default()
        .routes(
            read(
                SETTINGS,
                "/integrations/lark/status",
                "get_lark_status",
                "Returns the state of the Lark integration.",
            )
            .handled_by(absent_features::lark_status),
        )
        .routes(
            install
                .fails_with(&[501])
                .handled_by(absent_features::install_lark),
        )
        .routes(navigate.handled_by(absent_features::navigate_browser));
    LARK.into_iter()
        .fold(routes, |routes, (path, id, summary)| {
            routes.routes(
                send(SETTINGS, path, id, summary)
                    .fails_with(&[501])
                    .handled_by(absent_features::use_lark),
            )
        })
}

//! What the server says of itself.

use crate::openapi::{Routes, SYSTEM as TAG, docs, flag, get, openapi, word};
use crate::routes::meta;

/// In both dialects.
pub(super) fn shared() -> Routes {
    let ok = get("/ok", "health_check", "Says that the server is there.").tag(TAG);
    Routes::default()
        .routes(
            ok.query("check_db", flag(), "Whether to ask the database too.")
                .answers("Health", "It is there.")
                .by(meta::ok),
        )
        .routes(
            get(
                "/info",
                "get_info",
                "Says which version this is, and what it has.",
            )
            .tag(TAG)
            .answers("Info", "The facts.")
            .by(meta::info),
        )
}

/// At the root only.
pub(super) fn root() -> Routes {
    let ok = get("/", "root_health_check", "Says that the server is there.").tag(TAG);
    let health = get(
        "/health",
        "deployment_health_check",
        "Says so to deployments.",
    )
    .tag(TAG);
    let ready = get(
        "/ready",
        "readiness_check",
        "Says whether runs are taken here now.",
    )
    .tag(TAG);
    let metrics = get(
        "/metrics",
        "get_metrics",
        "Gives the figures of this process.",
    )
    .tag(TAG);
    let document = get("/openapi.json", "get_openapi", "Gives this document.").tag(TAG);
    let page = get("/docs", "get_docs", "Shows this document to people.").tag(TAG);
    Routes::default()
        .routes(
            ok.query("check_db", flag(), "Whether to ask the database too.")
                .answers("Health", "It is there.")
                .by(meta::ok),
        )
        .routes(
            health
                .answers("Deployment", "It is there.")
                .by(meta::health),
        )
        .routes(
            ready
                .answers("Deployment", "They are.")
                .answers_as_well(503, "Deployment", "They are not.")
                .by(meta::ready),
        )
        .routes(
            metrics
                .query(
                    "format",
                    word(meta::METRICS_FORMATS),
                    "`json` for the runs that wait and work, in all processes.",
                )
                .answers_either(
                    "Metrics",
                    "text/plain; version=0.0.4; charset=utf-8",
                    "For Prometheus, or as JSON.",
                )
                .by(meta::metrics),
        )
        .routes(
            document
                .answers("Document", "An OpenAPI document.")
                .refuses(&[404])
                .by(openapi),
        )
        .routes(
            page.answers_text("text/html; charset=utf-8", "A page.")
                .refuses(&[404])
                .by(docs),
        )
}

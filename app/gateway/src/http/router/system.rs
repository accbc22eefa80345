//! Routes about the server itself.

use crate::openapi::{Routes, SYSTEM as TAG, flag, get, word};
use crate::responses::documented::{Deployment, Document, Health, Info, Metrics};
use crate::routes::{docs, meta};

/// Routes of both dialects.
pub(super) fn shared() -> Routes {
    let ok = get("/ok", "health_check", "Checks that the server is alive.").tag(TAG);
    Routes::default()
        .routes(
            ok.query("check_db", flag(), "Also checks the database.")
                .returns::<Health>("Alive.")
                .handled_by(meta::ok),
        )
        .routes(
            get(
                "/info",
                "get_info",
                "Returns the version and the supported features.",
            )
            .tag(TAG)
            .returns::<Info>("Server information.")
            .handled_by(meta::info),
        )
}

/// Routes of the root only.
pub(super) fn root() -> Routes {
    let ok = get("/", "root_health_check", "Checks that the server is alive.").tag(TAG);
    let health = get(
        "/health",
        "deployment_health_check",
        "Reports the health of the server's components.",
    )
    .tag(TAG);
    let ready = get(
        "/ready",
        "readiness_check",
        "Reports whether this process accepts runs.",
    )
    .tag(TAG);
    let metrics = get("/metrics", "get_metrics", "Returns metrics.").tag(TAG);
    let document = get("/openapi.json", "get_openapi", "Returns this document.").tag(TAG);
    let page = get("/docs", "get_docs", "Shows this document as a page.").tag(TAG);
    let redoc = get("/redoc", "get_redoc", "Redirects to the documentation.").tag(TAG);
    Routes::default()
        .routes(
            redoc
                .returns_empty(307, "The documentation is at `/docs`.")
                .fails_with(&[404])
                .handled_by(docs::redoc),
        )
        .routes(
            ok.query("check_db", flag(), "Also checks the database.")
                .returns::<Health>("Alive.")
                .handled_by(meta::ok),
        )
        .routes(
            health
                .returns::<Deployment>("Alive.")
                .handled_by(meta::health),
        )
        .routes(
            ready
                .returns::<Deployment>("Ready.")
                .returns_with_status::<Deployment>(503, "Not ready.")
                .handled_by(meta::ready),
        )
        .routes(
            metrics
                .query(
                    "format",
                    word(meta::METRICS_FORMATS),
                    "`json` for the numbers of queued and active runs in all processes, and of requests and runs of this process.",
                )
                .returns_either::<Metrics>(
                    "text/plain; version=0.0.4; charset=utf-8",
                    "Metrics in Prometheus' text format, or JSON.",
                )
                .handled_by(meta::metrics),
        )
        .described(
            document
                .returns::<Document>("An OpenAPI document.")
                .fails_with(&[404])
                .without_handler(),
        )
        .routes(
            page.returns_text("text/html; charset=utf-8", "An HTML page.")
                .fails_with(&[404])
                .handled_by(docs::page),
        )
}

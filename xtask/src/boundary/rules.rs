//! Tables that `boundary` enforces. A new row is an architectural decision and deserves its own
//! commit.

/// Crates of this workspace, and the workspace crates that each may depend on (itself always, for
/// features of its tests).
pub(super) const CRATES: &[(&str, &[&str])] = &[
    ("deerflow-core", &[]),
    ("deerflow-runtime", &["deerflow-core"]),
    ("deerflow-models", &["deerflow-core", "deerflow-runtime"]),
    ("deerflow-sandbox", &["deerflow-core"]),
    (
        "deerflow-flow",
        &["deerflow-core", "deerflow-runtime", "deerflow-models"],
    ),
    (
        "deerflow-harness",
        &[
            "deerflow-core",
            "deerflow-runtime",
            "deerflow-models",
            "deerflow-sandbox",
            "deerflow-flow",
        ],
    ),
    ("deerflow-domain", &["deerflow-core", "deerflow-runtime"]),
    (
        "deerflow-gateway",
        &[
            "deerflow-accounts",
            "deerflow-domain",
            "deerflow-flow",
            "deerflow-harness",
        ],
    ),
    (
        "deerflow-stores",
        &["deerflow-core", "deerflow-domain", "deerflow-runtime"],
    ),
    ("deerflow-bridges", &["deerflow-core", "deerflow-runtime"]),
    (
        "deerflow-mcp-server",
        &["deerflow-domain", "deerflow-harness"],
    ),
    (
        "deerflow-channels",
        &[
            "deerflow-chat-platforms",
            "deerflow-domain",
            "deerflow-harness",
        ],
    ),
    (
        "deerflow-accounts",
        &["deerflow-domain", "deerflow-harness"],
    ),
    (
        "deerflow-server",
        &[
            "deerflow-accounts",
            "deerflow-domain",
            "deerflow-flow",
            "deerflow-gateway",
            "deerflow-stores",
            "deerflow-bridges",
            "deerflow-channels",
            "deerflow-mcp-server",
            "deerflow-harness",
        ],
    ),
    (
        "deerflow-tests",
        &[
            "deerflow-domain",
            "deerflow-gateway",
            "deerflow-stores",
            "deerflow-bridges",
            "deerflow-channels",
            "deerflow-chat-platforms",
            "deerflow-server",
            "deerflow-harness",
        ],
    ),
    ("deerflow-chat-platforms", &[]),
    ("xtask", &[]),
];

/// Libraries that determine the architecture, and the crates that may use them. A name stands for
/// its family: `axum` includes `axum-extra`.
pub(super) const RESTRICTED: &[(&str, &[&str])] = &[
    ("sea-orm", &["deerflow-stores"]),
    ("sqlx", &["deerflow-stores"]),
    (
        "axum",
        &[
            "deerflow-gateway",
            "deerflow-server",
            "deerflow-tests",
            "deerflow-chat-platforms",
        ],
    ),
    ("redis", &["deerflow-bridges", "deerflow-tests"]),
    ("figment", &["deerflow-harness"]),
];

/// Path of these tables, for messages.
pub(super) const HOME: &str = "xtask/src/boundary/rules.rs";

//! The tables that `boundary` enforces. A new row is an architectural decision: give it its own commit.

/// Our crates, and the crates of ours that each may depend on (itself always, for features of its tests).
pub(super) const CRATES: &[(&str, &[&str])] = &[
    ("deerflow-harness", &[]),
    ("deerflow-domain", &["deerflow-harness"]),
    ("deerflow-gateway", &["deerflow-domain", "deerflow-harness"]),
    ("deerflow-stores", &["deerflow-domain", "deerflow-harness"]),
    ("deerflow-bridges", &["deerflow-harness"]),
    (
        "deerflow-channels",
        &["deerflow-domain", "deerflow-harness"],
    ),
    (
        "deerflow-server",
        &[
            "deerflow-domain",
            "deerflow-gateway",
            "deerflow-stores",
            "deerflow-bridges",
            "deerflow-channels",
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
            "deerflow-server",
            "deerflow-harness",
        ],
    ),
    ("xtask", &[]),
];

/// Libraries that decide an architecture, and the crates that may name them. A name stands for its family:
/// `axum` is also `axum-extra`.
pub(super) const RESTRICTED: &[(&str, &[&str])] = &[
    ("sea-orm", &["deerflow-stores"]),
    ("sqlx", &["deerflow-stores"]),
    (
        "axum",
        &["deerflow-gateway", "deerflow-server", "deerflow-tests"],
    ),
    ("redis", &["deerflow-bridges", "deerflow-tests"]),
    ("figment", &["deerflow-harness"]),
];

/// The top modules of harness from the bottom up. A module may use its own layer and those before it.
pub(super) const LAYERS: &[&[&str]] = &[
    &[
        "messages",
        "state",
        "ids",
        "clock",
        "config",
        "host_file",
        "net",
        "turns",
    ],
    &["runtime"],
    &[
        "models",
        "tools",
        "sandbox",
        "memory",
        "skills",
        "programs",
        "mcp",
        "acp",
        "guardrails",
        "documents",
        "uploads",
        "artifacts",
        "config_file",
    ],
    &["middlewares", "agents", "subagents"],
    &["flow"],
    &["client"],
];

/// The module of harness that may use every layer, and that only test code may use.
pub(super) const TESTKIT: &str = "testkit";

/// Where these tables are, for messages.
pub(super) const HOME: &str = "xtask/src/boundary/rules.rs";

/// The number of the layer that `module` is in.
pub(super) fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

//! `/assistants`.

use crate::openapi::{ASSISTANTS as TAG, Routes, delete, flag, get, patch, post, text};
use crate::routes::assistants;

const ALL: &str = "/assistants";
const ONE: &str = "/assistants/{assistant_id}";

/// In both dialects.
pub(super) fn shared() -> Routes {
    let search = post(
        "/assistants/search",
        "search_assistants",
        "Finds assistants.",
    )
    .tag(TAG);
    let count = post(
        "/assistants/count",
        "count_assistants",
        "Counts assistants.",
    )
    .tag(TAG);
    let read = get(ONE, "get_assistant", "Reads an assistant.")
        .tag(TAG)
        .ids();
    let graph = get(
        "/assistants/{assistant_id}/graph",
        "get_assistant_graph",
        "Shows an assistant's nodes and edges.",
    )
    .tag(TAG)
    .names();
    let schemas = get(
        "/assistants/{assistant_id}/schemas",
        "get_assistant_schemas",
        "Describes what goes in and what comes out.",
    )
    .tag(TAG)
    .ids();
    Routes::default()
        .routes(
            search
                .optional_body("AssistantSearch")
                .answers("Assistants", "A page of them.")
                .refuses(&[404])
                .by(assistants::search),
        )
        .routes(
            count
                .optional_body("AssistantCount")
                .answers("Count", "How many there are.")
                .refuses(&[404])
                .by(assistants::count),
        )
        .routes(
            read.answers("Assistant", "The assistant.")
                .by(assistants::get),
        )
        .routes(
            graph
                .query("xray", text(), "`true`, `false`, or a depth above 0.")
                .answers("Graph", "The drawing.")
                .by(assistants::graph),
        )
        .routes(
            schemas
                .answers("GraphSchemas", "JSON schemas.")
                .by(assistants::schemas),
        )
}

/// At the root only.
pub(super) fn root() -> Routes {
    let create = post(ALL, "create_assistant", "Makes an assistant of a graph.").tag(TAG);
    let change = patch(
        ONE,
        "patch_assistant",
        "Changes an assistant, as a new version.",
    )
    .tag(TAG)
    .ids();
    let remove = delete(ONE, "delete_assistant", "Removes an assistant.")
        .tag(TAG)
        .ids();
    let versions = post(
        "/assistants/{assistant_id}/versions",
        "get_assistant_versions",
        "Lists an assistant's versions, newest first.",
    );
    let latest = post(
        "/assistants/{assistant_id}/latest",
        "set_latest_assistant_version",
        "Puts a version in force again.",
    )
    .tag(TAG)
    .ids();
    let inner = get(
        "/assistants/{assistant_id}/subgraphs",
        "get_assistant_subgraphs",
        "Lists the graphs inside of nodes.",
    )
    .tag(TAG)
    .ids();
    let deeper = get(
        "/assistants/{assistant_id}/subgraphs/{namespace}",
        "get_assistant_subgraphs_in",
        "Lists the graphs inside of a node.",
    );
    let recurse = |asked: crate::openapi::Operation| {
        asked.query("recurse", flag(), "Whether to look into those too.")
    };
    Routes::default()
        .routes(
            create
                .body("AssistantCreate")
                .answers("Assistant", "The assistant.")
                .refuses(&[404, 409])
                .by(assistants::create),
        )
        .routes(
            change
                .body("AssistantPatch")
                .answers("Assistant", "The assistant as it is now.")
                .by(assistants::patch),
        )
        .routes(
            remove
                .query(
                    "delete_threads",
                    flag(),
                    "Whether the threads of its runs go too.",
                )
                .answers_empty(204, "It is gone.")
                .by(assistants::delete),
        )
        .routes(
            versions
                .tag(TAG)
                .ids()
                .optional_body("VersionSearch")
                .answers("AssistantVersions", "A page of them.")
                .by(assistants::versions),
        )
        .routes(
            latest
                .body("VersionChange")
                .answers("Assistant", "The assistant as it is now.")
                .by(assistants::set_latest),
        )
        .routes(
            recurse(inner)
                .answers("Subgraphs", "By the node's name.")
                .by(assistants::subgraphs),
        )
        .routes(
            recurse(deeper.tag(TAG).names())
                .answers("Subgraphs", "By the node's name.")
                .by(assistants::subgraphs),
        )
}

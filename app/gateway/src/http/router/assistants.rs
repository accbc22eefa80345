//! Routes under `/assistants`.

use crate::openapi::{ASSISTANTS as TAG, Routes, delete, flag, get, patch, post, text};
use crate::requests::bodies::{
    AssistantCount, AssistantCreate, AssistantPatch, AssistantSearch, VersionChange, VersionSearch,
};
use crate::responses::documented::{
    Assistant, AssistantVersions, Assistants, Count, Graph, GraphSchemas, Subgraphs,
};
use crate::routes::assistants;

const ALL: &str = "/assistants";
const ONE: &str = "/assistants/{assistant_id}";

/// Routes of both dialects.
pub(super) fn shared() -> Routes {
    let search = post(
        "/assistants/search",
        "search_assistants",
        "Searches assistants.",
    )
    .tag(TAG);
    let count = post(
        "/assistants/count",
        "count_assistants",
        "Counts assistants.",
    )
    .tag(TAG);
    let read = get(ONE, "get_assistant", "Returns an assistant.")
        .tag(TAG)
        .ids();
    let graph = get(
        "/assistants/{assistant_id}/graph",
        "get_assistant_graph",
        "Returns an assistant's graph.",
    )
    .tag(TAG)
    .names();
    let schemas = get(
        "/assistants/{assistant_id}/schemas",
        "get_assistant_schemas",
        "Returns the schemas of an assistant.",
    )
    .tag(TAG)
    .ids();
    Routes::default()
        .routes(
            search
                .optional_body::<AssistantSearch>()
                .returns::<Assistants>("A page of assistants.")
                .fails_with(&[404])
                .handled_by(assistants::search),
        )
        .routes(
            count
                .optional_body::<AssistantCount>()
                .returns::<Count>("Number of matches.")
                .fails_with(&[404])
                .handled_by(assistants::count),
        )
        .routes(
            read.returns::<Assistant>("The assistant.")
                .handled_by(assistants::get),
        )
        .routes(
            graph
                .query("xray", text(), "`true`, `false`, or a depth above 0.")
                .returns::<Graph>("The graph.")
                .handled_by(assistants::graph),
        )
        .routes(
            schemas
                .returns::<GraphSchemas>("JSON schemas.")
                .handled_by(assistants::schemas),
        )
}

/// Routes of the root only.
pub(super) fn root() -> Routes {
    let create = post(ALL, "create_assistant", "Creates an assistant.").tag(TAG);
    let change = patch(
        ONE,
        "patch_assistant",
        "Updates an assistant, which creates a version.",
    )
    .tag(TAG)
    .ids();
    let remove = delete(ONE, "delete_assistant", "Deletes an assistant.")
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
        "Restores a version of an assistant.",
    )
    .tag(TAG)
    .ids();
    let inner = get(
        "/assistants/{assistant_id}/subgraphs",
        "get_assistant_subgraphs",
        "Returns the nested graphs.",
    )
    .tag(TAG)
    .ids();
    let deeper = get(
        "/assistants/{assistant_id}/subgraphs/{namespace}",
        "get_assistant_subgraphs_in",
        "Returns the nested graphs of a node.",
    );
    let recurse = |operation: crate::openapi::Operation| {
        operation.query("recurse", flag(), "Includes graphs of nested graphs.")
    };
    Routes::default()
        .routes(
            create
                .body::<AssistantCreate>()
                .returns::<Assistant>("The assistant.")
                .fails_with(&[404, 409])
                .handled_by(assistants::create),
        )
        .routes(
            change
                .body::<AssistantPatch>()
                .returns::<Assistant>("The updated assistant.")
                .handled_by(assistants::patch),
        )
        .routes(
            remove
                .query(
                    "delete_threads",
                    flag(),
                    "Also deletes the threads of its runs.",
                )
                .returns_empty(204, "Deleted.")
                .handled_by(assistants::delete),
        )
        .routes(
            versions
                .tag(TAG)
                .ids()
                .optional_body::<VersionSearch>()
                .returns::<AssistantVersions>("A page of assistants.")
                .handled_by(assistants::versions),
        )
        .routes(
            latest
                .body::<VersionChange>()
                .returns::<Assistant>("The updated assistant.")
                .handled_by(assistants::set_latest),
        )
        .routes(
            recurse(inner)
                .returns::<Subgraphs>("Graphs by node name.")
                .handled_by(assistants::subgraphs),
        )
        .routes(
            recurse(deeper.tag(TAG).names())
                .returns::<Subgraphs>("Graphs by node name.")
                .handled_by(assistants::subgraphs),
        )
}

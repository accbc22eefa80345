//! Routes under `/flows`.

use crate::openapi::{
    FLOWS as TAG, Operation, Routes, delete, flag, get, number, post, put, text, whole_number, word,
};
use crate::responses::documented::{
    FlowAdapterKinds, FlowAssets, FlowDocument, FlowEntries, FlowEntry, FlowError, FlowGraph,
    FlowNodeKinds, FlowSchema, FlowValidation, FlowVersions, SystemFlowState,
};
use crate::routes::flows;

const ALL: &str = "/flows";
const ONE: &str = "/flows/{flow_id}";
/// Media types of a flow's text. JSON is accepted, too; a schema of it would refuse the documents
/// that these routes report about.
const TEXT: [&str; 2] = ["application/yaml", "text/plain"];

/// Routes of both dialects.
pub(super) fn shared() -> Routes {
    about().merge(stored()).merge(parts())
}

fn about() -> Routes {
    let validate = post("/flows/validate", "validate_flow", "Validates a flow.").tag(TAG);
    let schema = get(
        "/flows/schema",
        "get_flow_schema",
        "Returns the JSON Schema of flows.",
    );
    let adapters = get(
        "/flows/adapters",
        "list_flow_adapters",
        "Lists the adapter kinds.",
    );
    let kinds = get(
        "/flows/node-kinds",
        "list_flow_node_kinds",
        "Lists the node kinds.",
    );
    let assets = get(
        "/flows/assets",
        "get_flow_assets",
        "Returns the prompt assets of a flow or of the system flows.",
    );
    let reload = post(
        "/flows/assets/reload",
        "reload_flows",
        "Reads the system flows again.",
    );
    Routes::default()
        .routes(
            validate
                .query(
                    "strict",
                    text(),
                    "`false` accepts unknown node kinds. Default `true`.",
                )
                .query("deep", flag(), "Also checks the configuration of adapters.")
                .file_body(&TEXT)
                .returns::<FlowValidation>("All findings.")
                .handled_by(flows::validate),
        )
        .routes(
            schema
                .tag(TAG)
                .returns::<FlowSchema>("A JSON Schema.")
                .handled_by(flows::schema),
        )
        .routes(
            adapters
                .tag(TAG)
                .returns::<FlowAdapterKinds>("Adapter kinds.")
                .handled_by(flows::adapters),
        )
        .routes(
            kinds
                .tag(TAG)
                .returns::<FlowNodeKinds>("Node kinds.")
                .handled_by(flows::node_kinds),
        )
        .routes(
            assets
                .tag(TAG)
                .query("flowId", text(), "Id of a flow.")
                .fails_with(&[404])
                .returns::<FlowAssets>("Prompt assets.")
                .handled_by(flows::assets),
        )
        .routes(
            reload
                .tag(TAG)
                .returns::<SystemFlowState>("State of the system flows.")
                .handled_by(flows::reload),
        )
}

fn stored() -> Routes {
    let (max, default) = flows::MAX_LISTED;
    let list = get(
        ALL,
        "list_flows",
        "Lists the flows of the user and of the system.",
    )
    .tag(TAG);
    let create = post(ALL, "create_flow", "Creates a flow.").tag(TAG);
    let import = post(
        "/flows/import",
        "import_flows",
        "Imports the flows of an archive.",
    )
    .tag(TAG);
    let change = put(
        ONE,
        "put_flow",
        "Replaces the text of a flow, which creates a version.",
    );
    let remove = delete(ONE, "delete_flow", "Deletes a flow with its versions.");
    Routes::default()
        .routes(
            list.query(
                "limit",
                number(1, max, default),
                "Maximum number of results.",
            )
            .query("offset", whole_number(0), "Number of results to skip.")
            .returns::<FlowEntries>("A page of flows.")
            .handled_by(flows::list),
        )
        .routes(
            create
                .query("id", text(), "Id of the flow. Default: from its name.")
                .file_body(&TEXT)
                .returns_with_status::<FlowEntry>(201, "The flow.")
                .fails_with(&[409])
                .fails_as::<FlowError>(422)
                .handled_by(flows::create),
        )
        .routes(
            import
                .query("replace", flag(), "Flows of the same ids get new versions.")
                .file_body(&["application/zip"])
                .returns_with_status::<FlowEntries>(201, "The flows.")
                .fails_with(&[409])
                .fails_as::<FlowError>(422)
                .handled_by(flows::import),
        )
        .routes(
            version(get(ONE, "get_flow", "Returns a flow with its text."))
                .returns::<FlowDocument>("The flow.")
                .handled_by(flows::get),
        )
        .routes(
            if_match(change)
                .file_body(&TEXT)
                .returns::<FlowEntry>("The changed flow.")
                .fails_as::<FlowError>(422)
                .handled_by(flows::put),
        )
        .routes(
            if_match(remove)
                .returns_empty(204, "Deleted.")
                .handled_by(flows::delete),
        )
}

fn parts() -> Routes {
    let versions = get(
        "/flows/{flow_id}/versions",
        "list_flow_versions",
        "Lists the versions of a flow, newest first.",
    );
    let restore = post(
        "/flows/{flow_id}/versions/{version}/restore",
        "restore_flow_version",
        "Restores a version of a flow as a new version.",
    );
    let graph = get("/flows/{flow_id}/graph", "get_flow_graph", "Draws a flow.");
    let export = get(
        "/flows/{flow_id}/export",
        "export_flow",
        "Returns a flow with its assets as an archive, without secrets.",
    );
    Routes::default()
        .routes(
            versions
                .tag(TAG)
                .names()
                .returns::<FlowVersions>("The versions.")
                .handled_by(flows::versions),
        )
        .routes(
            if_match(restore)
                .returns::<FlowEntry>("The changed flow.")
                .fails_as::<FlowError>(422)
                .handled_by(flows::restore),
        )
        .routes(
            version(graph)
                .query(
                    "format",
                    word(flows::GRAPH_FORMATS),
                    "Format of the drawing.",
                )
                .returns_either::<FlowGraph>(
                    "text/plain; charset=utf-8",
                    "Nodes and edges, or text for Mermaid.",
                )
                .fails_as::<FlowError>(422)
                .handled_by(flows::graph),
        )
        .routes(
            version(export)
                .returns_text("application/zip", "An archive that imports again.")
                .fails_as::<FlowError>(422)
                .handled_by(flows::export),
        )
}

/// Adds the version to an operation on a flow.
fn version(operation: Operation) -> Operation {
    operation.tag(TAG).names().query(
        "version",
        whole_number(1),
        "Number of the version. Default: the current one.",
    )
}

/// Adds the precondition to a change of a flow.
fn if_match(operation: Operation) -> Operation {
    operation
        .tag(TAG)
        .names()
        .header(
            "if-match",
            "Hash that the flow's content must have, in quotes.",
        )
        .fails_with(&[409, 412])
}

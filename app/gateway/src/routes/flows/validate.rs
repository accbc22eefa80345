//! `POST /flows/validate`.

use axum::Json;
use axum::extract::State;
use deerflow_domain::flows::FlowContent;
use deerflow_flow::schema::Document;
use harness::runtime::compute::heavy_poll;
use serde_json::json;

use super::body::FlowText;
use crate::extract::Query;
use crate::flows::FlowRules;
use crate::routes::JsonResult;
use crate::state::AgentServices;

/// Returns all findings of a flow, whether it is valid or not.
pub(crate) async fn validate(
    State(agents): State<AgentServices>,
    query: Query,
    body: FlowText,
) -> JsonResult {
    let strict = query.flag("strict")?.unwrap_or(true);
    let deep = query.flag("deep")?.unwrap_or(false);
    let content = FlowContent::new(body.text, Vec::new());
    heavy_poll(FlowRules::size(&content)).await;
    let validation = match Document::read(&content.text) {
        Ok(document) => agents.flows.rules().validate(&document, &[], strict, deep),
        Err(validation) => validation,
    };
    Ok(Json(json!(validation)))
}

//! Tool definitions, with schemas derived from the argument and result types.

use rmcp::model::{JsonObject, Tool, ToolAnnotations};

use crate::arguments::{AskArgs, ReadArtifactArgs};
use crate::outcome::Answer;

/// Name of the tool that asks the agent.
pub(crate) const ASK: &str = "ask";
/// Name of the tool that reads a file.
pub(crate) const READ_ARTIFACT: &str = "read_artifact";

/// Returns all tools.
pub(crate) fn tools() -> Vec<Tool> {
    let ask = "Give the DeerFlow agent a task or a question and wait for its answer. It can search and read the web, work with files, run \
        tools and plan, as far as its installation allows. The answer names a thread_id: call again with it to go on, and to answer when \
        the agent asks something.";
    let read_artifact = "Read a file that the DeerFlow agent made or was given: text as text, a picture as a picture.";
    let of = |name, description| Tool::new(name, description, JsonObject::new());
    vec![
        of(ASK, ask)
            .with_input_schema::<AskArgs>()
            .with_output_schema::<Answer>()
            // The agent may do anything that its tools allow.
            .with_annotations(
                ToolAnnotations::with_title("Ask DeerFlow")
                    .read_only(false)
                    .destructive(true)
                    .idempotent(false)
                    .open_world(true),
            ),
        of(READ_ARTIFACT, read_artifact)
            .with_input_schema::<ReadArtifactArgs>()
            .with_annotations(
                ToolAnnotations::with_title("Read a file of DeerFlow's")
                    .read_only(true)
                    .open_world(false),
            ),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn schemas_mark_optional_fields_and_describe_all() {
        let tools: Value = serde_json::to_value(tools()).unwrap();
        assert_eq!(tools[0]["inputSchema"]["required"], json!(["message"]));
        assert_eq!(
            tools[0]["inputSchema"]["additionalProperties"],
            json!(false)
        );
        assert_eq!(
            tools[1]["inputSchema"]["required"],
            json!(["thread_id", "path"])
        );
        assert_eq!(
            tools[0]["outputSchema"]["required"],
            json!(["thread_id", "run_id", "text", "artifacts", "usage"])
        );
        for schema in [
            &tools[0]["inputSchema"],
            &tools[0]["outputSchema"],
            &tools[1]["inputSchema"],
        ] {
            assert_eq!(schema["type"], "object");
            for (name, field) in schema["properties"].as_object().unwrap() {
                assert!(field["description"].is_string(), "{name}: {field}");
            }
        }
    }
}

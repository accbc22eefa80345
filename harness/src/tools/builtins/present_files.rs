//! `present_files`: presents result files to the user.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{failed, files_of};
use crate::sandbox::safe_fs::NodeKind;
use crate::sandbox::{FileHome, Root, render};
use crate::state::StateUpdate;
use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};

/// Shows files of the outputs directory to the user.
#[derive(Debug, Clone)]
pub struct PresentFiles {
    /// File storage of all threads.
    pub home: FileHome,
}

/// Arguments of `present_files`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct PresentFilesArgs {
    /// The files, as absolute paths under /mnt/user-data/outputs.
    pub filepaths: Vec<String>,
}

impl Tool for PresentFiles {
    type Args = PresentFilesArgs;

    fn name(&self) -> &str {
        "present_files"
    }

    fn description(&self) -> &str {
        "Show finished files to the user. Call it once the files exist in /mnt/user-data/outputs; files elsewhere are not seen by \
         the user and must be written to outputs first."
    }

    fn effect(&self, _args: &PresentFilesArgs) -> Effect {
        Effect::Pure
    }

    async fn call(
        &self,
        args: PresentFilesArgs,
        ctx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        if args.filepaths.is_empty() {
            return Err(ToolError::for_model(
                "Error: name at least one file to present.",
            ));
        }
        let files = files_of(&self.home, ctx);
        let mut presented = Vec::with_capacity(args.filepaths.len());
        for raw in &args.filepaths {
            let path = files
                .resolve_for_display(raw)
                .map_err(|error| ToolError::for_model(render::error(&error)))?;
            if path.root() != Root::Outputs {
                return Err(ToolError::for_model(format!(
                    "Error: {path} is not in /mnt/user-data/outputs; only files there can be presented."
                )));
            }
            match files
                .stat(&path)
                .await
                .map_err(failed)?
                .map(|stat| stat.kind)
            {
                Some(NodeKind::File) => {}
                Some(_) => {
                    return Err(ToolError::for_model(format!(
                        "Error: {path} is not a file; present each of its files by name."
                    )));
                }
                None => {
                    return Err(ToolError::for_model(format!(
                        "Error: {path} does not exist; write it before presenting it."
                    )));
                }
            }
            presented.push(path.to_string());
        }
        let update = StateUpdate::channel("artifacts", json!(presented));
        Ok(ToolOutput {
            update,
            ..ToolOutput::text("The files are shown to the user.")
        })
    }
}

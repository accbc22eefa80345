//! Object-safe counterpart of [`Tool`].

use std::fmt;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::tool::{Effect, Tool, ToolContext};
use super::{ToolError, ToolOutput};
use crate::models::ToolSchema;

/// Tool with its argument type erased.
///
/// ```
/// use std::sync::Arc;
///
/// use deerflow_harness::models::ToolSchema;
/// use deerflow_harness::tools::{DynTool, Effect, ToolContext, ToolError, ToolOutput};
/// use futures_util::FutureExt;
/// use futures_util::future::BoxFuture;
/// use serde_json::{Map, Value};
///
/// /// Tool whose schema is known at run time only.
/// struct Described(ToolSchema);
///
/// impl DynTool for Described {
///     fn schema(&self) -> &ToolSchema {
///         &self.0
///     }
///
///     fn effect(&self, _args: &Map<String, Value>) -> Effect {
///         Effect::Pure
///     }
///
///     fn return_direct(&self) -> bool {
///         false
///     }
///
///     fn call<'a>(
///         &'a self,
///         args: Map<String, Value>,
///         _ctx: &'a ToolContext,
///     ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
///         async move { Ok(ToolOutput::text(Value::from(args).to_string())) }.boxed()
///     }
/// }
///
/// fn tool(schema: ToolSchema) -> Arc<dyn DynTool> {
///     Arc::new(Described(schema))
/// }
/// ```
pub trait DynTool: Send + Sync + 'static {
    /// Name, description and parameters of the tool.
    fn schema(&self) -> &ToolSchema;
    /// Effect of repeating a call with these arguments; [`Effect::Pure`] if the arguments are
    /// invalid.
    fn effect(&self, args: &Map<String, Value>) -> Effect;
    /// See [`Tool::return_direct`].
    fn return_direct(&self) -> bool;
    /// See [`Tool::is_foreign`].
    fn is_foreign(&self) -> bool {
        false
    }
    /// Name of the MCP server that the tool belongs to.
    fn server(&self) -> Option<&str> {
        None
    }
    /// Parses the arguments and calls the tool. Invalid arguments are an error for the model that
    /// names the field.
    fn call<'a>(
        &'a self,
        args: Map<String, Value>,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

impl fmt::Debug for dyn DynTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tool({})", self.schema().name)
    }
}

struct Erased<T> {
    tool: T,
    schema: ToolSchema,
}

/// Erases the argument type of a tool and derives its schema once.
pub fn erase<T: Tool>(tool: T) -> Arc<dyn DynTool> {
    let mut parameters = schemars::SchemaGenerator::new(
        schemars::generate::SchemaSettings::draft07().with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        }),
    )
    .into_root_schema_for::<T::Args>()
    .to_value();
    if let Some(fields) = parameters.as_object_mut() {
        fields.remove("title");
    }
    let schema = ToolSchema {
        name: tool.name().to_owned(),
        description: tool.description().to_owned(),
        parameters,
    };
    Arc::new(Erased { tool, schema })
}

impl<T: Tool> DynTool for Erased<T> {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn effect(&self, args: &Map<String, Value>) -> Effect {
        T::Args::deserialize(args).map_or(Effect::Pure, |args| self.tool.effect(&args))
    }

    fn return_direct(&self) -> bool {
        self.tool.return_direct()
    }

    fn is_foreign(&self) -> bool {
        self.tool.is_foreign()
    }

    fn call<'a>(
        &'a self,
        args: Map<String, Value>,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let args: T::Args = serde_path_to_error::deserialize(Value::Object(args)).map_err(|error| {
                let at = error.path().to_string();
                let location = if at == "." { String::new() } else { format!(" at {at}") };
                ToolError::ForModel(format!(
                    "Error: invalid arguments for {}{location}: {}. Correct them and call the tool again.",
                    self.schema.name,
                    error.inner()
                ))
            })?;
            self.tool.call(args, ctx).await
        }
        .boxed()
    }
}

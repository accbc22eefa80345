//! The prompt assets of a project after parsing.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::schema::OutputKind;
use crate::schema::TurnMode;

/// Prompt assets of a project.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PromptAssetManifest {
    /// Text that precedes the system prompt of every agent asset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub global_system_prompt: Option<String>,
    /// Agents by id.
    pub agents: IndexMap<String, AgentAsset>,
    /// Instructions by name.
    pub instructions: IndexMap<String, TextAsset>,
    /// Skills by the name of their folder.
    pub skills: IndexMap<String, TextAsset>,
    /// Problems of the files, in the order of their paths.
    pub errors: Vec<ManifestError>,
}

impl PromptAssetManifest {
    /// Returns the problems of one agent.
    pub fn errors_of<'m>(&'m self, agent: &'m str) -> impl Iterator<Item = &'m ManifestError> {
        self.errors
            .iter()
            .filter(move |error| error.agent_id.as_deref() == Some(agent))
    }
}

/// Agent of a file `*.agent.md`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentAsset {
    /// Name for people.
    pub name: String,
    /// Description for people.
    pub description: String,
    /// Kind of the output.
    pub output_kind: OutputKind,
    /// Kind of the adapter.
    #[serde(default = "default_adapter_kind")]
    pub adapter_kind: String,
    /// Name of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Temperature, 0 to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Mode of turns of nodes that state none.
    #[serde(default)]
    pub turn_mode: TurnMode,
    /// Tools or groups of tools.
    #[serde(default)]
    pub tools: Vec<String>,
    /// `true` if users may call the agent.
    #[serde(default)]
    pub user_invocable: bool,
    /// Hint about the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument_hint: Option<String>,
    /// Other assets in its prompt.
    #[serde(default)]
    pub includes: Includes,
    /// Prompt.
    #[serde(default)]
    pub body: String,
    /// Path of the file in the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_path: Option<String>,
}

/// Kind of agents that state none.
pub(super) fn default_adapter_kind() -> String {
    "pi-mono".to_owned()
}

/// Assets in the prompt of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Includes {
    /// Names of instructions.
    pub instructions: Vec<String>,
    /// Folders of skills.
    pub skills: Vec<String>,
    /// `true` if the global system prompt precedes.
    pub global_system_prompt: bool,
}

impl Default for Includes {
    fn default() -> Self {
        Self {
            instructions: Vec::new(),
            skills: Vec::new(),
            global_system_prompt: true,
        }
    }
}

/// Instruction or skill.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "TextAssetForm")]
pub struct TextAsset {
    /// Name for people.
    pub name: String,
    /// Description for people.
    pub description: String,
    /// Text.
    pub content: String,
    /// Path of the file in the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_path: Option<String>,
}

/// Forms in which a text asset is written: the text alone, or with its facts.
#[derive(Deserialize)]
#[serde(untagged)]
enum TextAssetForm {
    Text(String),
    #[serde(rename_all = "camelCase")]
    Full {
        #[serde(default)]
        name: String,
        #[serde(default)]
        description: String,
        content: String,
        #[serde(default)]
        source_path: Option<String>,
    },
}

impl From<TextAssetForm> for TextAsset {
    fn from(form: TextAssetForm) -> Self {
        match form {
            TextAssetForm::Text(content) => Self {
                content,
                ..Self::default()
            },
            TextAssetForm::Full {
                name,
                description,
                content,
                source_path,
            } => Self {
                name,
                description,
                content,
                source_path,
            },
        }
    }
}

/// Problem of an asset file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManifestError {
    /// Code.
    pub code: ManifestErrorCode,
    /// Problem and what would be right, for people.
    #[serde(default)]
    pub message: String,
    /// Path of the file or folder in the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_path: Option<String>,
    /// Agent that the problem belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
}

/// Code of a problem of an asset file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ManifestErrorCode {
    /// Two files define one agent; the first in the order of paths counts.
    DuplicateAgentId,
    /// Two files define one instruction; the first in the order of paths counts.
    DuplicateInstructionName,
    /// An agent includes an asset that does not exist.
    MissingInclude,
    /// The frontmatter is missing or not valid.
    InvalidFrontmatter,
    /// The file cannot be read.
    FileReadError,
    /// A Markdown file in a folder of assets has another name than they have.
    UnexpectedFile,
    /// A folder cannot be read.
    StatError,
}

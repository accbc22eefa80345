//! Bodies about the messages, the goal, the feedback and the files of a thread.

use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};

use crate::extract::request_body;

/// Feedback on a run or on a message.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct FeedbackWrite {
    /// 1 or -1.
    #[serde(default)]
    #[schema(schema_with = rating, required = true)]
    pub rating: Value,
    /// Comment of the user.
    #[serde(default)]
    pub comment: Option<String>,
    /// Only with `POST`.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub message_id: Value,
}

request_body!(FeedbackWrite, checked_later: ["message_id"]);

fn rating() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(SchemaType::AnyValue)
        .enum_values(Some([1, -1]))
        .description(Some("1 or -1."))
}

/// An edited text file.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct ArtifactEdit {
    /// New text.
    #[serde(default)]
    #[schema(required = true)]
    pub content: String,
    /// SHA-256 of the file as it was read, in hexadecimal.
    #[serde(default)]
    #[schema(nullable = false, required = true, pattern = "^[0-9a-f]{64}$")]
    pub expected_sha256: Option<String>,
}

request_body!(ArtifactEdit);

/// Files to upload.
#[derive(Debug, ToSchema)]
pub struct UploadForm {
    /// Contents of the files.
    #[schema(format = "binary")]
    pub files: Vec<String>,
}

/// A request for follow-up questions.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct SuggestionsAsk {
    /// The last messages of the conversation.
    #[serde(default)]
    #[schema(value_type = Vec<DialogueTurn>, inline, required = true)]
    pub messages: Value,
    /// Number of questions.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 5)]
    pub n: Option<u64>,
    /// Name of the model.
    #[serde(default)]
    #[schema(max_length = 128)]
    pub model_name: Option<String>,
}

request_body!(SuggestionsAsk);

/// A message of a conversation.
#[derive(Debug, ToSchema)]
pub struct DialogueTurn {
    /// Role of the author.
    pub role: String,
    /// Text, or blocks of content.
    #[schema(schema_with = text_or_blocks)]
    pub content: Value,
}

fn text_or_blocks() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::from_iter([Type::String, Type::Array]))
}

/// A goal of a thread.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct GoalPut {
    /// Condition that the agent reaches.
    #[serde(default)]
    #[schema(required = true)]
    pub objective: String,
    /// Maximum number of continuations.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 8)]
    pub max_continuations: Option<u64>,
}

request_body!(GoalPut);

/// A compaction of a thread's context.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct ThreadCompact {
    /// Compacts the context even if it is short. Default `true`.
    #[serde(default)]
    pub force: Option<bool>,
    /// Amount of context to retain.
    #[serde(default)]
    #[schema(value_type = Option<RetainedContext>, inline)]
    pub keep: Option<Map<String, Value>>,
    /// Name of the model.
    #[serde(default)]
    #[schema(max_length = 128)]
    pub model_name: Option<String>,
    /// Name of the agent.
    #[serde(default)]
    #[schema(max_length = 128)]
    pub agent_name: Option<String>,
}

request_body!(ThreadCompact);

/// Amount of context to retain.
#[derive(Debug, ToSchema)]
pub struct RetainedContext {
    /// Unit of the amount.
    #[schema(rename = "type", inline)]
    pub unit: RetainedUnit,
    /// Amount.
    #[schema(exclusive_minimum = 0)]
    pub value: f64,
}

/// Unit of an amount of context.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "lowercase")]
pub enum RetainedUnit {
    /// Tokens.
    Tokens,
    /// Messages.
    Messages,
    /// Fraction of the model's context.
    Fraction,
}

/// A draft to rewrite.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct InputPolish {
    /// The draft.
    #[serde(default)]
    #[schema(required = true)]
    pub text: String,
    /// Language of the user.
    #[serde(default)]
    #[schema(max_length = 128)]
    pub locale: Option<String>,
    /// Id of the thread.
    #[serde(default)]
    pub thread_id: Option<String>,
}

request_body!(InputPolish);

/// A branch of a thread.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct ThreadBranch {
    /// Id of the last message of the turn that the branch retains.
    #[serde(default)]
    #[schema(required = true)]
    pub message_id: String,
    /// Ids of the turn's messages; not used.
    #[serde(default)]
    pub message_ids: Vec<String>,
    /// Title of the branch. Default: the title of the thread.
    #[serde(default)]
    #[schema(max_length = 256)]
    pub title: Option<String>,
}

request_body!(ThreadBranch);

/// The answer to regenerate.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct RegeneratePrepare {
    /// Id of the answer.
    #[serde(default)]
    #[schema(required = true)]
    pub message_id: String,
}

request_body!(RegeneratePrepare);

/// The question to edit.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct EditPrepare {
    /// Id of the question.
    #[serde(default)]
    #[schema(required = true)]
    pub human_message_id: String,
    /// New text of the question.
    #[serde(default)]
    #[schema(nullable = false, required = true)]
    pub replacement_text: Option<String>,
}

request_body!(EditPrepare);

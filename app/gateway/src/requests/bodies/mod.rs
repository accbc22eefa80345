//! Types of request bodies. Their fields are declared in the order in which issues are reported,
//! and their comments are the descriptions of the OpenAPI document.

mod agents;
mod assistants;
mod command;
mod crons;
mod items;
mod protocol;
mod runs;
mod scheduled_tasks;
mod settings;
mod shared;
mod sign_in;
mod states;
mod threads;
mod transcripts;

pub use agents::{AgentCreate, AgentModelSettings, AgentUpdate, Effort, UserProfile};
pub use assistants::{
    AssistantCount, AssistantCreate, AssistantField, AssistantPatch, AssistantSearch,
    AssistantSortBy, VersionChange, VersionSearch,
};
pub use command::{Command, Goto, NodeTarget, Send};
pub use crons::{
    AfterRunName, CronCount, CronCreate, CronField, CronPatch, CronSearch, CronSortBy,
    CronSortOrder,
};
pub use items::{ItemDelete, ItemPut, ItemSearch, NamespaceSearch};
pub use protocol::{ProtocolCommand, ProtocolSubscription};
pub(crate) use runs::MAX_DELAY;
pub use runs::{
    CancelStatus, DurabilityName, IfThreadMissing, MultitaskName, OnCompletion, OnDisconnect,
    RunBatch, RunCreate, RunsCancel, StreamModeName, StreamModeNames, ThreadRunCreate,
};
pub use scheduled_tasks::{TaskCreate, TaskPatch};
pub use settings::{
    ChannelCredentials, FactAdd, FactPatch, McpConfig, McpSwitch, MemoryImport, SkillInstall,
    SkillRollback, SkillSwitch, SkillText,
};
pub use shared::{Config, Metadata};
pub use sign_in::{
    NewAccountBody, NewKeyBody, NewUserBody, PasswordChangeBody, RoleName, SignInForm,
    UserPatchBody,
};
pub use states::{
    Checkpoint, Content, ContentBlock, CursorConfig, HistorySearch, Message, MessageType, Messages,
    Role, RoleMessage, StateAt, StatePatch, StateUpdate, StateValuesBody, TypedMessage,
};
pub use threads::{
    IfExists, PruneStrategy, SortOrder, StepUpdate, Superstep, ThreadCount, ThreadCreate,
    ThreadField, ThreadPatch, ThreadPrune, ThreadSearch, ThreadSortBy, ThreadStatusName,
    TtlStrategy,
};
pub use transcripts::{
    ArtifactEdit, DialogueTurn, EditPrepare, FeedbackWrite, GoalPut, InputPolish,
    RegeneratePrepare, RetainedContext, RetainedUnit, SuggestionsAsk, ThreadBranch, ThreadCompact,
    UploadForm,
};

use serde::{Deserialize, Deserializer};

/// Reads a nullable field that is present: the outer `Option` is its presence, the inner one null.
fn present<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer).map(Some)
}

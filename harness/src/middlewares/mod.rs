//! Middlewares: parts of an agent's behaviour, one per file, combined in a fixed order.
//!
//! To add one: a file with a struct and `impl Middleware`, its position in [`order`], and a line in
//! the assembly of each agent that uses it.

mod answers;
mod clarification;
mod dangling_tool_calls;
mod delegation;
mod file_changes;
mod finish_guard;
pub mod goal;
pub mod guardrail;
mod hooks;
mod llm_errors;
mod loop_detection;
mod memory;
mod middleware;
pub mod order;
mod pairing;
mod read_before_write;
mod real_user;
mod sanitization;
mod skills;
mod stack;
mod subagent_limit;
mod subagent_usage;
pub mod summarization;
mod thread_data;
mod title;
mod todo;
mod token_budget;
mod token_usage;
mod tool_errors;
mod tool_output;
mod uploads;
mod view_image;

pub use crate::messages::framework_tags;
pub use clarification::ClarificationMiddleware;
pub use dangling_tool_calls::DanglingToolCallMiddleware;
pub use delegation::{TASK, TaskLimits};
pub(crate) use file_changes::with_file_changes;
pub use file_changes::{FileChangesMiddleware, SnapshotFileChanges};
pub use finish_guard::FinishGuardMiddleware;
pub use goal::GoalMiddleware;
pub use guardrail::GuardrailMiddleware;
pub use hooks::{HookOutcome, HookResult, Hooks, Jump, Phase};
pub use llm_errors::LlmErrorMiddleware;
pub use loop_detection::LoopDetectionMiddleware;
pub use memory::MemoryMiddleware;
pub use middleware::{Middleware, ModelHandler, ModelNext, ToolHandler, ToolNext};
pub use pairing::repair;
pub use read_before_write::ReadBeforeWriteMiddleware;
pub use real_user::{is_real_user_message, user_text};
pub use sanitization::{InputSanitizationMiddleware, ToolResultSanitizationMiddleware};
pub use skills::SkillsMiddleware;
pub use stack::MiddlewareStack;
pub use subagent_limit::SubagentLimitMiddleware;
pub use subagent_usage::SubagentUsageMiddleware;
pub use summarization::SummarizationMiddleware;
pub use thread_data::ThreadDataMiddleware;
pub use title::TitleMiddleware;
pub use todo::TodoMiddleware;
pub use token_budget::TokenBudgetMiddleware;
pub use token_usage::TokenUsageMiddleware;
pub use tool_errors::ToolErrorMiddleware;
pub use tool_output::ToolOutputBudgetMiddleware;
pub use uploads::UploadsMiddleware;
pub use view_image::ViewImageMiddleware;

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::middlewares::ModelHandler as ModelEnd;
#[doc(hidden)]
pub use crate::middlewares::ToolHandler as ToolEnd;

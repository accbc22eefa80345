//! Middlewares: small parts of an agent's behaviour, each in a file of its own, put together in a fixed order.
//!
//! To add one: a file with a struct and `impl Middleware`, its place in [`order`], and a line where the agent that shall have
//! it is put together.

mod clarification;
mod dangling_tool_calls;
mod llm_errors;
mod memory;
mod middleware;
mod next;
pub mod order;
mod pairing;
mod real_user;
mod stack;
pub mod summarization;
mod thread_data;
mod title;
mod tool_errors;
mod uploads;

pub use clarification::ClarificationMiddleware;
pub use dangling_tool_calls::DanglingToolCallMiddleware;
pub use llm_errors::LlmErrorMiddleware;
pub use memory::MemoryMiddleware;
pub use middleware::{HookOutcome, HookResult, Hooks, Jump, Middleware, Phase};
pub use next::{ModelEnd, ModelNext, ToolEnd, ToolNext};
pub use pairing::repair;
pub use real_user::{is_real_user_message, user_text};
pub use stack::MiddlewareStack;
pub use summarization::SummarizationMiddleware;
pub use thread_data::ThreadDataMiddleware;
pub use title::TitleMiddleware;
pub use tool_errors::ToolErrorMiddleware;
pub use uploads::UploadsMiddleware;

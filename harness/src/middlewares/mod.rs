//! Middlewares: small parts of an agent's behaviour, each in a file of its own, put together in a fixed order.

mod middleware;
mod next;
mod stack;

pub use middleware::{HookOutcome, HookResult, Hooks, Jump, Middleware, Phase};
pub use next::{ModelEnd, ModelNext, ToolEnd, ToolNext};
pub use stack::MiddlewareStack;

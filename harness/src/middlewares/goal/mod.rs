//! Goals of threads: an objective of the user that is evaluated at the end of every run; the agent
//! continues while it is not reached.

mod evaluate;
mod goals;
mod middleware;
mod state;

pub use goals::{GoalError, GoalView, Goals, ObjectiveIssue};
pub use middleware::GoalMiddleware;
pub use state::{Blocker, Evaluation, GOAL, Goal, MAX_CONTINUATIONS, MAX_OBJECTIVE_CHARS};

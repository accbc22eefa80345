//! Goals of threads: what a user wants to be reached, looked at after every run, and worked on until it is.

mod evaluate;
mod goals;
mod middleware;
mod state;

pub use goals::{GoalError, GoalView, Goals, ObjectiveIssue};
pub use middleware::GoalMiddleware;
pub use state::{Blocker, Evaluation, GOAL, Goal, MAX_CONTINUATIONS, MAX_OBJECTIVE_CHARS};

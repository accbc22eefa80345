//! What the acting user wants to be reached in a thread, as `/threads/{t}/goal` tells it.

use super::client::Client;
use super::error::ClientError;
use crate::ids::ThreadId;
use crate::middlewares::goal::{GoalView, Goals, MAX_CONTINUATIONS};
use crate::runtime::actor_context::effective_user_id;

impl Client {
    /// The goal of a thread, if it has one. A thread that is not there has none.
    ///
    /// # Errors
    /// [`ClientError::Absent`], and when a store fails.
    pub async fn get_goal(&self, thread: &ThreadId) -> Result<GoalView, ClientError> {
        Ok(self.goals(&effective_user_id())?.get(thread).await?)
    }

    /// Sets the goal of a thread, which is made when it is new. The agent is sent on towards it [`MAX_CONTINUATIONS`] times at most.
    ///
    /// # Errors
    /// [`ClientError::Goal`] for an objective beyond limits and while a run is at work, and as [`get_goal`](Self::get_goal).
    pub async fn set_goal(
        &self,
        thread: &ThreadId,
        objective: &str,
    ) -> Result<GoalView, ClientError> {
        Ok(self
            .goals(&effective_user_id())?
            .set(thread, objective, MAX_CONTINUATIONS)
            .await?)
    }

    /// Takes the goal of a thread away, if it has one.
    ///
    /// # Errors
    /// [`ClientError::Goal`] while a run is at work, and as [`get_goal`](Self::get_goal).
    pub async fn clear_goal(&self, thread: &ThreadId) -> Result<GoalView, ClientError> {
        Ok(self.goals(&effective_user_id())?.clear(thread).await?)
    }

    fn goals<'a>(&'a self, user: &'a str) -> Result<Goals<'a>, ClientError> {
        let (threads, parts) = (self.installation.threads()?, self.runs.parts());
        Ok(Goals {
            user,
            threads,
            checkpoints: &*parts.checkpointer,
            clock: &*parts.clock,
            ids: &*parts.ids,
        })
    }
}

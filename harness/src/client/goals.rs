//! Goal of a thread, as `/threads/{t}/goal` returns it.

use super::client::Client;
use super::error::ClientError;
use crate::ids::ThreadId;
use crate::middlewares::goal::{GoalView, Goals, MAX_CONTINUATIONS};
use crate::runtime::actor_context::effective_user_id;

impl Client {
    /// Returns the goal of a thread, if it has one. An unknown thread has none.
    ///
    /// # Errors
    /// [`ClientError::Absent`], and the failure of a store.
    pub async fn get_goal(&self, thread: &ThreadId) -> Result<GoalView, ClientError> {
        Ok(self.goals(&effective_user_id())?.get(thread).await?)
    }

    /// Sets the goal of a thread, which is created if it does not exist. The agent continues
    /// towards the goal at most [`MAX_CONTINUATIONS`] times.
    ///
    /// # Errors
    /// [`ClientError::Goal`] for an objective that exceeds limits and while a run is active; the
    /// errors of [`get_goal`](Self::get_goal).
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

    /// Removes the goal of a thread, if it has one.
    ///
    /// # Errors
    /// [`ClientError::Goal`] while a run is active; the errors of [`get_goal`](Self::get_goal).
    pub async fn clear_goal(&self, thread: &ThreadId) -> Result<GoalView, ClientError> {
        Ok(self.goals(&effective_user_id())?.clear(thread).await?)
    }

    fn goals<'a>(&'a self, user: &'a str) -> Result<Goals<'a>, ClientError> {
        let (threads, parts) = (self.installation.threads()?, self.runs.runtime().ports());
        Ok(Goals {
            user,
            threads,
            checkpoints: &*parts.checkpointer,
            clock: &*parts.clock,
            ids: &*parts.ids,
        })
    }
}

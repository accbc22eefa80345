//! Creates the runs of crons from the stored request of each cron.

use std::sync::Arc;

use async_trait::async_trait;
use deerflow_domain::crons::{AfterRun, Cron, CronRunner, StartError};
use harness::ids::RunId;
use harness::runtime::actor_context::{ActorContext, scope};
use harness::runtime::runs::RunError;
use harness::runtime::runs::store::AdmitError;

use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::requests::RunTarget;
use crate::routes::crons::request_of;
use crate::routes::runs::spec_for;
use crate::state::GatewayState;

/// Creates runs by the same rules as the platform's routes.
#[derive(Debug, Clone)]
pub struct CronRuns(Arc<GatewayState>);

impl CronRuns {
    /// A runner on the gateway's shared state.
    pub fn new(state: Arc<GatewayState>) -> Self {
        Self(state)
    }

    async fn make(&self, cron: &Cron, run: RunId) -> Result<(), ApiError> {
        let mut request = request_of(cron.payload.clone());
        let target = match &cron.thread_id {
            Some(thread) => RunTarget::Thread(thread.clone()),
            None => {
                let after = cron.on_run_completed.unwrap_or(AfterRun::Delete);
                request.insert("on_completion".to_owned(), after.as_str().into());
                RunTarget::Stateless
            }
        };
        let mut spec = spec_for(&self.0, Dialect::Platform, &target, request).await?;
        spec.metadata
            .insert("cron_id".to_owned(), cron.cron_id.to_string().into());
        spec.run_id = Some(run);
        match self.0.runs.create_background(spec).await {
            Ok(_) | Err(RunError::Admit(AdmitError::RunExists(_))) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[async_trait]
impl CronRunner for CronRuns {
    async fn start(&self, cron: &Cron, run: RunId) -> Result<(), StartError> {
        let actor = ActorContext {
            auth_source: Some("cron".to_owned()),
            ..ActorContext::user(&cron.user_id)
        };
        scope(actor, self.make(cron, run))
            .await
            .map_err(|error| match error {
                ApiError::Unavailable(_) | ApiError::NotWritable(_) | ApiError::Internal(_) => {
                    StartError::Unavailable(error.to_string())
                }
                other => StartError::Refused(other.to_string()),
            })
    }
}

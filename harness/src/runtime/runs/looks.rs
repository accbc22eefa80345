//! What the store says of a run, asked once for all in this process who want to know it at about the same time.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::parts::RuntimeParts;
use super::record::RunRecord;
use super::store::{RunQueryStore, StoreError};
use crate::ids::RunId;
use crate::runtime::actor_context::Owner;
use crate::runtime::tasks::{TaskKind, Tasks};

/// The runs of which somebody wants to know how they stand.
#[derive(Debug, Default)]
pub(super) struct RunLooks(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    looks: HashMap<RunId, Weak<RunLook>>,
    /// With so many, those that nobody wants any more are let go.
    tidied_at: usize,
}

/// With fewer runs nothing is tidied.
const FEW: usize = 64;

impl RunLooks {
    /// The look that all share who watch the run.
    pub(super) fn at(&self, run_id: &RunId, parts: &RuntimeParts) -> Arc<RunLook> {
        let mut known = self.0.lock();
        if let Some(look) = known.looks.get(run_id).and_then(Weak::upgrade) {
            return look;
        }
        if known.looks.len() >= known.tidied_at.max(FEW) {
            known.looks.retain(|_, look| look.strong_count() > 0);
            known.tidied_at = 2 * known.looks.len();
        }
        let (query, tasks) = (parts.query.clone(), parts.tasks.clone());
        let look = Arc::new(RunLook {
            run_id: run_id.clone(),
            query,
            tasks,
            asked: Mutex::default(),
        });
        known.looks.insert(run_id.clone(), Arc::downgrade(&look));
        look
    }
}

/// What a look found.
pub(super) type Found = Result<Option<Arc<RunRecord>>, StoreError>;

/// One answer, once it is there, and since when.
type Answer = watch::Receiver<Option<(Instant, Found)>>;

/// How one run stands.
#[derive(Debug)]
pub(super) struct RunLook {
    run_id: RunId,
    query: Arc<dyn RunQueryStore>,
    tasks: Tasks,
    asked: Mutex<Option<Answer>>,
}

impl RunLook {
    /// Which run it is.
    pub(super) fn run_id(&self) -> &RunId {
        &self.run_id
    }

    /// How the run stands, as the store said no longer than `age` ago, or says now. An end, once found, is not looked for again.
    pub(super) async fn within(&self, age: Duration) -> Found {
        let mut answer = self.answer_within(age);
        match answer.wait_for(Option::is_some).await.as_deref() {
            Ok(Some((_, found))) => found.clone(),
            _ => Err(StoreError::Unavailable(
                "the look at a run was given up".to_owned(),
            )),
        }
    }

    fn answer_within(&self, age: Duration) -> Answer {
        let mut asked = self.asked.lock();
        let serves = |answer: &&Answer| match &*answer.borrow() {
            Some((_, Ok(Some(run)))) if run.status.is_terminal() => true,
            Some((since, _)) => since.elapsed() < age,
            // On its way, unless it was given up.
            None => answer.has_changed().is_ok(),
        };
        if let Some(answer) = asked.as_ref().filter(serves) {
            return answer.clone();
        }
        let (answers, answer) = watch::channel(None);
        let (query, run_id) = (self.query.clone(), self.run_id.clone());
        // In a task of its own: who asked may stand still, as viewers do that do not read.
        self.tasks
            .spawn(TaskKind::Finish, "look at a run", async move {
                let found = query
                    .get(&run_id, &Owner::None)
                    .await
                    .map(|run| run.map(Arc::new));
                answers.send_replace(Some((Instant::now(), found)));
            });
        *asked = Some(answer.clone());
        answer
    }
}

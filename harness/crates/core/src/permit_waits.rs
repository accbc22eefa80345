//! Work that waits for permits, for metrics and for the runs that wait.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use parking_lot::Mutex;

/// Number of waiting requests by kind of work, in this process.
static WAITING: Mutex<BTreeMap<&'static str, usize>> = Mutex::new(BTreeMap::new());

/// Kinds of work for which a run waits, one per request.
#[derive(Debug, Clone, Default)]
pub struct ObservedWait(Arc<Mutex<Vec<&'static str>>>);

tokio::task_local! {
    static OBSERVED: ObservedWait;
}

impl ObservedWait {
    /// Runs `work` and observes its waits. Tasks that it spawns are not observed.
    pub fn observe<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        OBSERVED.scope(self.clone(), work)
    }

    /// Returns the kind of work that was requested last and waits.
    pub fn current(&self) -> Option<&'static str> {
        self.0.lock().last().copied()
    }
}

/// Returns the number of waiting requests by kind of work. A kind is included once a request has
/// waited.
pub fn waiting() -> BTreeMap<&'static str, usize> {
    WAITING.lock().clone()
}

/// A request that waits, until it is dropped.
#[derive(Debug)]
pub(crate) struct PermitWait {
    work: &'static str,
    observed: Option<ObservedWait>,
}

impl PermitWait {
    pub(crate) fn begin(work: &'static str) -> Self {
        *WAITING.lock().entry(work).or_default() += 1;
        let observed = OBSERVED.try_with(Clone::clone).ok();
        if let Some(observed) = &observed {
            observed.0.lock().push(work);
        }
        Self { work, observed }
    }
}

impl Drop for PermitWait {
    fn drop(&mut self) {
        if let Some(count) = WAITING.lock().get_mut(self.work) {
            *count -= 1;
        }
        if let Some(observed) = &self.observed {
            let mut works = observed.0.lock();
            if let Some(own) = works.iter().position(|work| *work == self.work) {
                works.remove(own);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::fair_permits::FairPermits;

    #[test]
    fn waits_are_counted_and_observed() {
        const WORK: &str = "waits_are_counted_and_observed";
        let permits = FairPermits::new(WORK, 1);
        let held = permits.acquire("a").now_or_never();
        let observed = ObservedWait::default();
        {
            let mut second = Box::pin(observed.observe(permits.acquire("b")));
            assert_eq!(observed.current(), None);
            assert!((&mut second).now_or_never().is_none());
            assert_eq!(observed.current(), Some(WORK));
            assert_eq!(waiting()[WORK], 1);
            drop(held);
            assert!((&mut second).now_or_never().is_some());
        }
        assert_eq!(observed.current(), None);
        assert_eq!(waiting()[WORK], 0);
    }
}

//! Limit of messages that a process handles at the same time.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

/// Permits that the channels of a process share.
#[derive(Debug, Default)]
pub(crate) struct Handling(Mutex<Option<(usize, Arc<Semaphore>)>>);

impl Handling {
    /// Returns the permits of a maximum. A changed maximum has permits of its own; messages in
    /// progress keep those of the former one.
    pub(crate) fn permits(&self, max: usize) -> Arc<Semaphore> {
        let mut current = self.0.lock();
        match &*current {
            Some((known, permits)) if *known == max => permits.clone(),
            _ => {
                let permits = Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS)));
                *current = Some((max, permits.clone()));
                permits
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_are_shared_until_the_maximum_changes() {
        let handling = Handling::default();
        let first = handling.permits(2);
        let _taken = first.try_acquire().unwrap();
        assert_eq!(handling.permits(2).available_permits(), 1);
        assert_eq!(handling.permits(3).available_permits(), 3);
        assert!(handling.permits(usize::MAX).available_permits() > 1_000);
    }
}

//! Slots of the container pool and the admission decision. Pure.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::sandbox_host::{ContainerEndpoint, SandboxId};
use deerflow_core::config::OverflowPolicy;

/// Limits and timeouts of the container pool.
#[derive(Debug, Clone, Copy)]
pub struct PoolRules {
    /// Maximum number of containers.
    pub replicas: usize,
    /// Policy when all containers are in use.
    pub overflow: OverflowPolicy,
    /// Number of additional containers under [`OverflowPolicy::Burst`].
    pub burst: usize,
    /// Maximum time that a command waits for a container.
    pub acquire_limit: Duration,
    /// Maximum time until the API of a new container responds.
    pub ready_limit: Duration,
    /// Maximum idle time of a container; with `None` it runs until shutdown.
    pub idle_limit: Option<Duration>,
    /// Time after a response in which no further readiness check is made.
    pub trust: Duration,
}

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) users: usize,
    /// `true` if one of the leases was taken to remove the container.
    pub(super) is_removing: bool,
    pub(super) idle_since: Instant,
    pub(super) container: SharedContainer,
}

impl Slot {
    pub(super) fn new(container: SharedContainer) -> Self {
        Self {
            users: 0,
            is_removing: false,
            idle_since: Instant::now(),
            container,
        }
    }

    /// Reports whether the slot becomes free when its container has been removed.
    fn is_being_removed(&self) -> bool {
        self.is_removing && self.users == 1
    }
}

pub(super) type SharedContainer = Arc<tokio::sync::Mutex<Option<PooledContainer>>>;

#[derive(Debug)]
pub(super) struct PooledContainer {
    pub(super) endpoint: ContainerEndpoint,
    /// Time of the last response.
    pub(super) last_response: Option<Instant>,
}

/// Admission decision for a caller that needs a container.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Grant,
    Evict(SandboxId),
    Wait,
    Reject,
}

pub(super) fn admit(
    slots: &HashMap<SandboxId, Slot>,
    id: &SandboxId,
    rules: &PoolRules,
) -> Admission {
    let oldest = || {
        slots
            .iter()
            .filter(|(_, slot)| slot.users == 0)
            .min_by_key(|(_, slot)| slot.idle_since)
            .map(|(id, _)| id.clone())
    };
    if slots.contains_key(id) || slots.len() < rules.replicas {
        return Admission::Grant;
    }
    match (oldest(), rules.overflow) {
        (Some(oldest), _) => Admission::Evict(oldest),
        (None, OverflowPolicy::Burst)
            if slots.len() < rules.replicas.saturating_add(rules.burst) =>
        {
            Admission::Grant
        }
        (None, OverflowPolicy::Reject) if !slots.values().any(Slot::is_being_removed) => {
            Admission::Reject
        }
        (None, _) => Admission::Wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admit_evicts_oldest_idle_container_only() {
        let id = |n: usize| SandboxId::read(&format!("{n:016x}")).unwrap();
        let now = Instant::now();
        let slot = |users, age| Slot {
            users,
            idle_since: now - Duration::from_secs(age),
            ..Slot::new(SharedContainer::default())
        };
        let rules = |overflow| PoolRules {
            replicas: 2,
            overflow,
            burst: 1,
            acquire_limit: Duration::from_secs(1),
            ready_limit: Duration::from_secs(1),
            idle_limit: None,
            trust: Duration::ZERO,
        };
        let mut slots = HashMap::from([(id(1), slot(0, 5))]);
        assert_eq!(
            admit(&slots, &id(2), &rules(OverflowPolicy::Wait)),
            Admission::Grant
        );
        slots.insert(id(2), slot(0, 9));
        assert_eq!(
            admit(&slots, &id(3), &rules(OverflowPolicy::Reject)),
            Admission::Evict(id(2))
        );
        assert_eq!(
            admit(&slots, &id(1), &rules(OverflowPolicy::Reject)),
            Admission::Grant
        );
        let busy = HashMap::from([(id(1), slot(1, 5)), (id(2), slot(3, 9))]);
        assert_eq!(
            admit(&busy, &id(3), &rules(OverflowPolicy::Wait)),
            Admission::Wait
        );
        assert_eq!(
            admit(&busy, &id(3), &rules(OverflowPolicy::Reject)),
            Admission::Reject
        );
        assert_eq!(
            admit(&busy, &id(3), &rules(OverflowPolicy::Burst)),
            Admission::Grant
        );
        let mut removals = HashMap::from([
            (id(1), slot(2, 5)),
            (
                id(2),
                Slot {
                    is_removing: true,
                    ..slot(1, 9)
                },
            ),
        ]);
        assert_eq!(
            admit(&removals, &id(3), &rules(OverflowPolicy::Reject)),
            Admission::Wait,
            "being removed"
        );
        removals.insert(
            id(2),
            Slot {
                is_removing: true,
                ..slot(2, 9)
            },
        );
        assert_eq!(
            admit(&removals, &id(3), &rules(OverflowPolicy::Reject)),
            Admission::Reject,
            "a container that is in use again is not freed"
        );
    }
}

//! The containers of this process: who uses which, how many there may be, and when one goes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use super::error::ContainerError;
use super::inside::Inside;
use super::place::{Order, Place, SandboxHost, SandboxId};
use crate::config::OverflowPolicy;
use crate::runtime::tasks::{TaskKind, Tasks};

/// How often a new container is asked whether it is ready.
const READY_PAUSE: Duration = Duration::from_millis(250);
/// How long the end of this process waits for containers to go.
const LEAVE_LIMIT: Duration = Duration::from_secs(30);

/// How many containers there are, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct PoolRules {
    /// How many there may be.
    pub replicas: usize,
    /// What happens when all of them are in use.
    pub overflow: OverflowPolicy,
    /// How many more there may be where [`OverflowPolicy::Burst`] says so.
    pub burst: usize,
    /// How long a command waits for its turn.
    pub acquire_limit: Duration,
    /// How long a new container may take until its API answers.
    pub ready_limit: Duration,
    /// How long a container lives that nobody uses; without it as long as this process.
    pub idle_limit: Option<Duration>,
    /// How long a container is trusted that has just answered.
    pub trust: Duration,
}

/// The containers of this process.
#[derive(Debug)]
pub(super) struct Pool {
    host: Arc<dyn SandboxHost>,
    pub(super) inside: Inside,
    rules: PoolRules,
    slots: Mutex<HashMap<SandboxId, Slot>>,
    changed: Notify,
    pub(super) tasks: Tasks,
}

#[derive(Debug)]
struct Slot {
    users: usize,
    /// Whether one of the users is there to remove the container.
    is_leaving: bool,
    idle_since: Instant,
    home: Home,
}

impl Slot {
    fn new(home: Home) -> Self {
        Self {
            users: 0,
            is_leaving: false,
            idle_since: Instant::now(),
            home,
        }
    }

    /// Whether it is free as soon as its container has been removed.
    fn is_almost_free(&self) -> bool {
        self.is_leaving && self.users == 1
    }
}

type Home = Arc<tokio::sync::Mutex<Option<Kept>>>;

#[derive(Debug)]
struct Kept {
    place: Place,
    /// When it answered last.
    answered: Option<Instant>,
}

/// What someone who needs a container has to do.
#[derive(Debug, PartialEq, Eq)]
enum Turn {
    Sit,
    Evict(SandboxId),
    Wait,
    GiveUp,
}

/// A place in the pool. While there is one, the container stays.
#[derive(Debug)]
pub(super) struct Seat {
    pool: Arc<Pool>,
    id: SandboxId,
    home: Home,
    /// Whether it was taken to remove the container.
    removes: bool,
}

impl Pool {
    pub(super) fn new(
        host: Arc<dyn SandboxHost>,
        inside: Inside,
        rules: PoolRules,
        tasks: Tasks,
    ) -> Arc<Self> {
        Arc::new(Self {
            host,
            inside,
            rules,
            slots: Mutex::default(),
            changed: Notify::new(),
            tasks,
        })
    }

    /// A container that answers. It goes on being made when nobody waits for it any more, so that none is forgotten.
    pub(super) async fn enter(
        self: &Arc<Self>,
        order: Order,
    ) -> Result<(Seat, Place), ContainerError> {
        let full = |_| ContainerError::Full {
            replicas: self.rules.replicas,
        };
        let seat = timeout(self.rules.acquire_limit, self.seat(&order.id))
            .await
            .map_err(full)??;
        let pool = self.clone();
        let furnishing = self
            .tasks
            .spawn(TaskKind::Finish, "sandbox start", async move {
                let closing = pool.tasks.token().clone();
                tokio::select! {
                    place = pool.furnish(&seat, &order) => Ok((seat, place?)),
                    () = closing.cancelled() => Err(ContainerError::Closing),
                }
            });
        furnishing
            .await
            .ok()
            .and_then(Result::ok)
            .unwrap_or(Err(ContainerError::Closing))
    }

    async fn seat(self: &Arc<Self>, id: &SandboxId) -> Result<Seat, ContainerError> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on no change is missed.
            changed.as_mut().enable();
            let turn = turn(&self.slots.lock(), id, &self.rules);
            match turn {
                Turn::Sit => return Ok(self.sit(id)),
                Turn::Evict(oldest) => self.give_up(&oldest, Duration::ZERO).await?,
                Turn::Wait => changed.await,
                Turn::GiveUp => {
                    return Err(ContainerError::Full {
                        replicas: self.rules.replicas,
                    });
                }
            }
        }
    }

    fn sit(self: &Arc<Self>, id: &SandboxId) -> Seat {
        let mut slots = self.slots.lock();
        let slot = slots
            .entry(id.clone())
            .or_insert_with(|| Slot::new(Home::default()));
        slot.users += 1;
        Seat {
            pool: self.clone(),
            id: id.clone(),
            home: slot.home.clone(),
            removes: false,
        }
    }

    fn sit_to_remove(self: &Arc<Self>, id: &SandboxId, idle: Duration) -> Option<Seat> {
        let mut slots = self.slots.lock();
        let slot = slots
            .get_mut(id)
            .filter(|slot| slot.users == 0 && slot.idle_since.elapsed() >= idle)?;
        slot.users = 1;
        slot.is_leaving = true;
        Some(Seat {
            pool: self.clone(),
            id: id.clone(),
            home: slot.home.clone(),
            removes: true,
        })
    }

    /// Has a container in the seat's slot that is what was ordered, and answers.
    async fn furnish(&self, seat: &Seat, order: &Order) -> Result<Place, ContainerError> {
        let mut home = seat.home.lock().await;
        let recipe = self.host.recipe(order);
        if home.is_none() {
            *home = self.host.find(order).await?.map(|place| Kept {
                place,
                answered: None,
            });
        }
        if let Some(kept) = &mut *home {
            // Somebody's command runs in it, whatever it is made of by now.
            let is_shared = self.users(&order.id) > 1;
            let is_trusted = is_shared
                || kept
                    .answered
                    .is_some_and(|answered| answered.elapsed() < self.rules.trust);
            let fits = is_shared || kept.place.made_of == recipe;
            if fits && is_trusted {
                return Ok(kept.place.clone());
            }
            if fits && self.inside.answers(&kept.place.url).await {
                kept.answered = Some(Instant::now());
                return Ok(kept.place.clone());
            }
        }
        if home.is_some() {
            tracing::info!(sandbox = %order.id, "a container is made anew: it does not answer, or something else is wanted");
            self.host.remove(&order.id).await?;
            *home = None;
        }
        let place = self.host.make(order).await?;
        if let Err(error) = self.ready(&place).await {
            self.host
                .remove(&order.id)
                .await
                .unwrap_or_else(|error| told(&order.id, &error));
            return Err(error);
        }
        *home = Some(Kept {
            place: place.clone(),
            answered: Some(Instant::now()),
        });
        Ok(place)
    }

    async fn ready(&self, place: &Place) -> Result<(), ContainerError> {
        let answers = async {
            while !self.inside.answers(&place.url).await {
                sleep(READY_PAUSE).await;
            }
        };
        let limit = self.rules.ready_limit;
        timeout(limit, answers)
            .await
            .map_err(|_| ContainerError::NotReady {
                seconds: limit.as_secs(),
            })
    }

    fn users(&self, id: &SandboxId) -> usize {
        self.slots.lock().get(id).map_or(0, |slot| slot.users)
    }

    /// Removes a container that nobody has used for so long. One that cannot be removed stays known.
    async fn give_up(
        self: &Arc<Self>,
        id: &SandboxId,
        idle: Duration,
    ) -> Result<(), ContainerError> {
        if let Some(seat) = self.sit_to_remove(id, idle) {
            let mut home = seat.home.lock().await;
            // Whoever came meanwhile has it made anew.
            self.host.remove(id).await?;
            *home = None;
        }
        Ok(())
    }

    /// Takes over what a former process left, removes what is idle, and all of it when this process ends.
    pub(super) async fn keep(self: Arc<Self>) {
        let token = self.tasks.token().clone();
        token.run_until_cancelled(self.keep_swept()).await;
        let ids: Vec<SandboxId> = self.slots.lock().keys().cloned().collect();
        let leaving = ids.iter().map(|id| self.host.remove(id));
        let left = timeout(LEAVE_LIMIT, futures_util::future::join_all(leaving)).await;
        let failed = left.map_or(ids.len(), |left| {
            left.iter().filter(|removed| removed.is_err()).count()
        });
        if failed > 0 {
            tracing::warn!(
                failed,
                "containers were not removed: the next start takes them over"
            );
        }
    }

    async fn keep_swept(self: &Arc<Self>) {
        match self.host.left_behind().await {
            Ok(left) => self.adopt(left),
            Err(error) => tracing::warn!(%error, "containers of a former process are not known"),
        }
        let Some(idle) = self.rules.idle_limit else {
            return std::future::pending().await;
        };
        loop {
            sleep((idle / 4).clamp(Duration::from_secs(1), Duration::from_secs(60))).await;
            let ids: Vec<SandboxId> = self.slots.lock().keys().cloned().collect();
            for id in ids {
                self.give_up(&id, idle)
                    .await
                    .unwrap_or_else(|error| told(&id, &error));
            }
        }
    }

    fn adopt(&self, left: Vec<(SandboxId, Place)>) {
        let mut slots = self.slots.lock();
        for (id, place) in left {
            let home = || {
                Arc::new(tokio::sync::Mutex::new(Some(Kept {
                    place,
                    answered: None,
                })))
            };
            slots.entry(id).or_insert_with(|| Slot::new(home()));
        }
    }
}

impl Seat {
    /// Has the container looked at before it is used again.
    pub(super) async fn doubt(&self) {
        if let Some(kept) = self.home.lock().await.as_mut() {
            kept.answered = None;
        }
    }

    pub(super) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut slots = self.pool.slots.lock();
        if let Some(slot) = slots.get_mut(&self.id) {
            slot.users -= 1;
            slot.is_leaving &= !self.removes;
            slot.idle_since = Instant::now();
            if slot.users == 0 && slot.home.try_lock().is_ok_and(|home| home.is_none()) {
                slots.remove(&self.id);
            }
        }
        drop(slots);
        self.pool.changed.notify_waiters();
    }
}

fn told(id: &SandboxId, error: &ContainerError) {
    tracing::warn!(sandbox = %id, %error, "a container was not removed");
}

fn turn(slots: &HashMap<SandboxId, Slot>, id: &SandboxId, rules: &PoolRules) -> Turn {
    let oldest = || {
        slots
            .iter()
            .filter(|(_, slot)| slot.users == 0)
            .min_by_key(|(_, slot)| slot.idle_since)
            .map(|(id, _)| id.clone())
    };
    if slots.contains_key(id) || slots.len() < rules.replicas {
        return Turn::Sit;
    }
    match (oldest(), rules.overflow) {
        (Some(oldest), _) => Turn::Evict(oldest),
        (None, OverflowPolicy::Burst)
            if slots.len() < rules.replicas.saturating_add(rules.burst) =>
        {
            Turn::Sit
        }
        (None, OverflowPolicy::Reject) if !slots.values().any(Slot::is_almost_free) => Turn::GiveUp,
        (None, _) => Turn::Wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_idle_container_goes_and_none_in_use() {
        let id = |n: usize| SandboxId::read(&format!("{n:016x}")).unwrap();
        let begun = Instant::now();
        let slot = |users, age| Slot {
            users,
            idle_since: begun - Duration::from_secs(age),
            ..Slot::new(Home::default())
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
            turn(&slots, &id(2), &rules(OverflowPolicy::Wait)),
            Turn::Sit
        );
        slots.insert(id(2), slot(0, 9));
        assert_eq!(
            turn(&slots, &id(3), &rules(OverflowPolicy::Reject)),
            Turn::Evict(id(2))
        );
        assert_eq!(
            turn(&slots, &id(1), &rules(OverflowPolicy::Reject)),
            Turn::Sit
        );
        let busy = HashMap::from([(id(1), slot(1, 5)), (id(2), slot(3, 9))]);
        assert_eq!(
            turn(&busy, &id(3), &rules(OverflowPolicy::Wait)),
            Turn::Wait
        );
        assert_eq!(
            turn(&busy, &id(3), &rules(OverflowPolicy::Reject)),
            Turn::GiveUp
        );
        assert_eq!(
            turn(&busy, &id(3), &rules(OverflowPolicy::Burst)),
            Turn::Sit
        );
        let mut leaving = HashMap::from([
            (id(1), slot(2, 5)),
            (
                id(2),
                Slot {
                    is_leaving: true,
                    ..slot(1, 9)
                },
            ),
        ]);
        assert_eq!(
            turn(&leaving, &id(3), &rules(OverflowPolicy::Reject)),
            Turn::Wait,
            "it goes in a moment"
        );
        leaving.insert(
            id(2),
            Slot {
                is_leaving: true,
                ..slot(2, 9)
            },
        );
        assert_eq!(
            turn(&leaving, &id(3), &rules(OverflowPolicy::Reject)),
            Turn::GiveUp,
            "somebody came back to it"
        );
    }
}

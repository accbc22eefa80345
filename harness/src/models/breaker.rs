//! Leaves a failing provider alone for a while: a pure state machine with time passed in, and its shared form.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;

/// When a circuit opens and how long it stays open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerPolicy {
    /// Failed calls in a row that open it.
    pub failure_threshold: u32,
    /// How long it stays open before one call may try again.
    pub recovery: Duration,
}

impl Default for BreakerPolicy {
    fn default() -> Self {
        Self {
            failure_threshold: 5,
            recovery: Duration::from_secs(60),
        }
    }
}

/// The state of one circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Circuit {
    /// Calls pass; so many failed in a row.
    Closed {
        /// Failures since the last success.
        failures: u32,
    },
    /// Calls are refused until then.
    Open {
        /// When one call may try.
        until: DateTime<Utc>,
    },
    /// One call tries; others are refused until it has ended.
    Probing,
}

impl Circuit {
    /// Asks to call at `now`: the state while the call lasts, or how long to stay away.
    pub fn admit(self, now: DateTime<Utc>) -> Result<Self, Duration> {
        match self {
            Self::Closed { .. } => Ok(self),
            Self::Open { until } if now >= until => Ok(Self::Probing),
            Self::Open { until } => Err(until
                .signed_duration_since(now)
                .to_std()
                .unwrap_or_default()),
            Self::Probing => Err(Duration::from_secs(1)),
        }
    }

    /// A call reached the provider.
    pub fn succeeded(self) -> Self {
        Self::Closed { failures: 0 }
    }

    /// A call failed at `now` by the provider's fault.
    pub fn failed(self, now: DateTime<Utc>, policy: BreakerPolicy) -> Self {
        let open = || {
            let recovery = TimeDelta::from_std(policy.recovery).unwrap_or(TimeDelta::MAX);
            Self::Open {
                until: now
                    .checked_add_signed(recovery)
                    .unwrap_or(DateTime::<Utc>::MAX_UTC),
            }
        };
        match self {
            Self::Closed { failures } if failures.saturating_add(1) < policy.failure_threshold => {
                Self::Closed {
                    failures: failures + 1,
                }
            }
            Self::Closed { .. } | Self::Probing => open(),
            // A call admitted before the circuit opened; it changes nothing.
            Self::Open { .. } => self,
        }
    }

    /// The probing call was given up without an outcome: the next may probe at once.
    pub fn abandoned(self, now: DateTime<Utc>) -> Self {
        match self {
            Self::Probing => Self::Open { until: now },
            other => other,
        }
    }
}

/// One model's circuit, shared by its callers.
#[derive(Debug)]
pub struct CircuitBreaker {
    policy: BreakerPolicy,
    circuit: Mutex<Circuit>,
}

impl CircuitBreaker {
    /// A closed circuit.
    pub fn new(policy: BreakerPolicy) -> Self {
        Self {
            policy,
            circuit: Mutex::new(Circuit::Closed { failures: 0 }),
        }
    }

    /// Asks to call; the error says how long to stay away. A permit that is dropped without an outcome, as a cancelled call
    /// does, lets the next caller probe.
    pub fn admit(self: &Arc<Self>, now: DateTime<Utc>) -> Result<CallPermit, Duration> {
        let mut circuit = self.circuit.lock();
        let probing = matches!(*circuit, Circuit::Open { .. });
        *circuit = circuit.admit(now)?;
        Ok(CallPermit {
            breaker: Arc::clone(self),
            admitted: now,
            probing,
            settled: false,
        })
    }

    /// The present state.
    pub fn circuit(&self) -> Circuit {
        *self.circuit.lock()
    }
}

/// Leave to make one call.
#[derive(Debug)]
#[must_use = "a permit ends the call's probe when it is dropped"]
pub struct CallPermit {
    breaker: Arc<CircuitBreaker>,
    admitted: DateTime<Utc>,
    probing: bool,
    settled: bool,
}

impl CallPermit {
    /// The provider answered.
    pub fn succeeded(mut self) {
        self.settled = true;
        let mut circuit = self.breaker.circuit.lock();
        *circuit = circuit.succeeded();
    }

    /// The provider failed.
    pub fn failed(mut self, now: DateTime<Utc>) {
        self.settled = true;
        let mut circuit = self.breaker.circuit.lock();
        *circuit = circuit.failed(now, self.breaker.policy);
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        if self.probing && !self.settled {
            let mut circuit = self.breaker.circuit.lock();
            *circuit = circuit.abandoned(self.admitted);
        }
    }
}

/// The circuits of all models, by entry name.
#[derive(Debug, Default)]
pub struct Breakers {
    policy: BreakerPolicy,
    by_model: Mutex<HashMap<String, Arc<CircuitBreaker>>>,
}

impl Breakers {
    /// Circuits that follow `policy`.
    pub fn new(policy: BreakerPolicy) -> Self {
        Self {
            policy,
            by_model: Mutex::default(),
        }
    }

    /// The circuit of the model entry `name`.
    pub fn of(&self, name: &str) -> Arc<CircuitBreaker> {
        let mut by_model = self.by_model.lock();
        if let Some(breaker) = by_model.get(name) {
            return Arc::clone(breaker);
        }
        let breaker = Arc::new(CircuitBreaker::new(self.policy));
        by_model.insert(name.to_owned(), Arc::clone(&breaker));
        breaker
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(second, 0).unwrap()
    }

    fn breaker(threshold: u32) -> Arc<CircuitBreaker> {
        Arc::new(CircuitBreaker::new(BreakerPolicy {
            failure_threshold: threshold,
            recovery: Duration::from_secs(60),
        }))
    }

    #[test]
    fn failures_in_a_row_open_it_and_a_success_between_them_does_not() {
        let breaker = breaker(2);
        breaker.admit(at(0)).unwrap().failed(at(0));
        breaker.admit(at(1)).unwrap().succeeded();
        breaker.admit(at(2)).unwrap().failed(at(2));
        assert_eq!(breaker.circuit(), Circuit::Closed { failures: 1 });
        breaker.admit(at(3)).unwrap().failed(at(3));
        assert_eq!(breaker.circuit(), Circuit::Open { until: at(63) });
        assert_eq!(breaker.admit(at(13)).unwrap_err(), Duration::from_secs(50));
    }

    #[test]
    fn after_the_recovery_one_probe_decides() {
        let breaker = breaker(1);
        breaker.admit(at(0)).unwrap().failed(at(0));
        let probe = breaker.admit(at(60)).unwrap();
        assert!(breaker.admit(at(60)).is_err(), "only one probe");
        probe.failed(at(61));
        assert_eq!(breaker.circuit(), Circuit::Open { until: at(121) });
        breaker.admit(at(121)).unwrap().succeeded();
        assert_eq!(breaker.circuit(), Circuit::Closed { failures: 0 });
    }

    #[test]
    fn a_cancelled_probe_is_released() {
        let breaker = breaker(1);
        breaker.admit(at(0)).unwrap().failed(at(0));
        drop(breaker.admit(at(60)).unwrap());
        assert!(breaker.admit(at(60)).is_ok());
    }

    #[test]
    fn a_late_failure_of_an_earlier_call_does_not_prolong_the_pause() {
        let breaker = breaker(1);
        let (early, late) = (breaker.admit(at(0)).unwrap(), breaker.admit(at(0)).unwrap());
        early.failed(at(1));
        late.failed(at(50));
        assert_eq!(breaker.circuit(), Circuit::Open { until: at(61) });
        drop(breaker.admit(at(2)));
        assert_eq!(breaker.circuit(), Circuit::Open { until: at(61) });
    }

    #[test]
    fn each_model_has_its_own_circuit() {
        let breakers = Breakers::new(BreakerPolicy {
            failure_threshold: 1,
            ..BreakerPolicy::default()
        });
        breakers.of("a").admit(at(0)).unwrap().failed(at(0));
        assert!(breakers.of("a").admit(at(1)).is_err());
        assert!(breakers.of("b").admit(at(1)).is_ok());
    }
}

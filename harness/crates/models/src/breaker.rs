//! Circuit breaker for failing providers: a pure state machine that gets the time as an argument,
//! and a shared wrapper.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;

/// Thresholds of a circuit breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerPolicy {
    /// Number of consecutive failed calls that open the circuit.
    pub failure_threshold: u32,
    /// Time that the circuit stays open before one probe call is admitted.
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

/// State of a circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Circuit {
    /// Calls are admitted.
    Closed {
        /// Failures since the last success.
        failures: u32,
    },
    /// Calls are rejected until a point in time.
    Open {
        /// Time at which one probe call is admitted.
        until: DateTime<Utc>,
    },
    /// One probe call is in flight; others are rejected until it ends.
    Probing,
}

impl Circuit {
    /// Requests admission of a call at `now`. Returns the state during the call. The error is the
    /// time until a call can be admitted.
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

    /// Returns the state after a call that the provider answered.
    pub fn succeeded(self) -> Self {
        Self::Closed { failures: 0 }
    }

    /// Returns the state after a call that failed at `now` because of the provider.
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
            // The call was admitted before the circuit opened. Its failure does not extend the open
            // time.
            Self::Open { .. } => self,
        }
    }

    /// Returns the state after a probe call that ended without an outcome. The next call may probe
    /// immediately.
    pub fn abandoned(self, now: DateTime<Utc>) -> Self {
        match self {
            Self::Probing => Self::Open { until: now },
            other => other,
        }
    }
}

/// Circuit breaker of one model, shared by its callers.
#[derive(Debug)]
pub struct CircuitBreaker {
    policy: BreakerPolicy,
    circuit: Mutex<Circuit>,
}

impl CircuitBreaker {
    /// Creates a closed circuit.
    pub fn new(policy: BreakerPolicy) -> Self {
        Self {
            policy,
            circuit: Mutex::new(Circuit::Closed { failures: 0 }),
        }
    }

    /// Requests admission of a call. The error is the time until a call can be admitted. If a
    /// permit is dropped without an outcome, for example because the call was cancelled, the next
    /// caller may probe.
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

    /// Returns the current state.
    pub fn circuit(&self) -> Circuit {
        *self.circuit.lock()
    }
}

/// Permit for one call.
#[derive(Debug)]
#[must_use = "a permit ends the call's probe when it is dropped"]
pub struct CallPermit {
    breaker: Arc<CircuitBreaker>,
    admitted: DateTime<Utc>,
    probing: bool,
    settled: bool,
}

impl CallPermit {
    /// Reports that the provider answered.
    pub fn succeeded(mut self) {
        self.settled = true;
        let mut circuit = self.breaker.circuit.lock();
        *circuit = circuit.succeeded();
    }

    /// Reports that the provider failed.
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

/// Circuit breakers of all models, by entry name.
#[derive(Debug, Default)]
pub struct Breakers {
    policy: BreakerPolicy,
    by_model: Mutex<HashMap<String, Arc<CircuitBreaker>>>,
}

impl Breakers {
    /// Creates circuit breakers with this policy.
    pub fn new(policy: BreakerPolicy) -> Self {
        Self {
            policy,
            by_model: Mutex::default(),
        }
    }

    /// Returns the circuit breaker of the model entry `name`. Creates it if there is none.
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
    fn consecutive_failures_open_the_circuit() {
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
    fn probe_after_recovery_decides_the_state() {
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
    fn cancelled_probe_is_released() {
        let breaker = breaker(1);
        breaker.admit(at(0)).unwrap().failed(at(0));
        drop(breaker.admit(at(60)).unwrap());
        assert!(breaker.admit(at(60)).is_ok());
    }

    #[test]
    fn late_failure_does_not_extend_the_open_time() {
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

//! Fail points: named positions at which a test kills the process, as a power failure would. No-ops
//! without the feature `fail-points`.

#[cfg(feature = "fail-points")]
pub use armed::{Plan, arm};

/// Marks that the process has reached the fail point `point`. Its name states the action before it.
#[inline]
pub fn pass(point: &'static str) {
    #[cfg(feature = "fail-points")]
    armed::pass(point);
    #[cfg(not(feature = "fail-points"))]
    let _ = point;
}

#[cfg(feature = "fail-points")]
mod armed {
    use std::fs::File;
    use std::io::Write;
    use std::sync::OnceLock;

    use parking_lot::Mutex;

    /// Fail point at which the process dies, and the file that records the reached fail points.
    #[derive(Debug, Default)]
    pub struct Plan {
        /// Fail point, and the number of times it is reached until the process dies there, from 1.
        pub dies_at: Option<(String, u64)>,
        /// File that receives the name of each reached fail point, one per line.
        pub passed: Option<File>,
    }

    static PLAN: OnceLock<Mutex<Plan>> = OnceLock::new();

    /// Activates `plan`. Only the first call has an effect.
    pub fn arm(plan: Plan) {
        let _armed_before = PLAN.set(Mutex::new(plan));
    }

    pub(super) fn pass(point: &'static str) {
        let Some(plan) = PLAN.get() else { return };
        let mut plan = plan.lock();
        if let Some(passed) = &mut plan.passed {
            // A failed write only loses a line of the record.
            let _unwritten = writeln!(passed, "{point}");
        }
        if let Some((_, remaining)) = plan.dies_at.as_mut().filter(|(fatal, _)| fatal == point) {
            *remaining = remaining.saturating_sub(1);
            if *remaining == 0 {
                // No destructor, no flush, no reply: the same as a killed process.
                std::process::abort();
            }
        }
    }
}

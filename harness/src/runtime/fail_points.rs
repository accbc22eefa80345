//! Named places where a test has the process die, as a power cut would. Without the feature `fail-points` they are nothing.

#[cfg(feature = "fail-points")]
pub use armed::{Plan, arm};

/// The process is at `place`, whose name says what has just been done.
#[inline]
pub fn pass(place: &'static str) {
    #[cfg(feature = "fail-points")]
    armed::pass(place);
    #[cfg(not(feature = "fail-points"))]
    let _ = place;
}

#[cfg(feature = "fail-points")]
mod armed {
    use std::fs::File;
    use std::io::Write;
    use std::sync::OnceLock;

    use parking_lot::Mutex;

    /// When the process dies, and where it writes down the places that it passes.
    #[derive(Debug, Default)]
    pub struct Plan {
        /// The place, and how often it is passed until the process dies there, from 1 on.
        pub dies_at: Option<(String, u64)>,
        /// Gets a line with the name of a place whenever one is passed.
        pub passed: Option<File>,
    }

    static PLAN: OnceLock<Mutex<Plan>> = OnceLock::new();

    /// From now on the process follows `plan`. Only the first one counts.
    pub fn arm(plan: Plan) {
        let _armed_before = PLAN.set(Mutex::new(plan));
    }

    pub(super) fn pass(place: &'static str) {
        let Some(plan) = PLAN.get() else { return };
        let mut plan = plan.lock();
        if let Some(passed) = &mut plan.passed {
            // Who reads it misses a line at worst.
            let _unwritten = writeln!(passed, "{place}");
        }
        if let Some((_, left)) = plan.dies_at.as_mut().filter(|(deadly, _)| deadly == place) {
            *left = left.saturating_sub(1);
            if *left == 0 {
                // No destructor, no flush, no reply: nothing that a killed process would not do either.
                std::process::abort();
            }
        }
    }
}

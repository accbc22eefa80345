//! Household words, and the field's term for each.

/// Words that neither names nor documentation use, in lower case, with terms to use instead. `docs/style.md` has the rule.
pub(super) const HOUSEHOLD: &[(&str, &str)] = &[
    ("told", "reported, notified or returned"),
    ("tells", "reports, notifies or returns"),
    ("news", "updates or pending"),
    ("patience", "timeout or retry budget"),
    ("mend", "fix or repair"),
    ("mends", "fixes or repairs"),
    ("mended", "fixed or repaired"),
    ("nobody", "no caller, no user or no process"),
    ("somebody", "a caller, a user or a process"),
    ("anybody", "any caller or any user"),
    ("goodbye", "shutdown"),
    ("crew", "pool"),
    ("shelf", "mount"),
    ("shelves", "mounts"),
    ("glimpse", "preview"),
    ("doorbell", "signal"),
    ("beside", "next to, concurrently with or in addition to"),
];

/// Item names that follow a name on the wire or in the database, or a former public path.
pub(super) const FIXED_NAMES: &[&str] = &["memory_news", "shelf"];

//! Contract suite of adapters: promises that every adapter kind keeps. Each function panics with the
//! promise that is broken. Hostile documents for readers of flows.

mod adapter_suite;
mod hostile;
mod setup;

pub use adapter_suite::{
    abort_of_an_unknown_turn_is_harmless, adapter_keeps_the_contract,
    deltas_make_up_the_final_text, dispose_is_idempotent, factory_describes_its_kind,
    failure_is_a_result, sessions_are_distinct, stopped_turn_can_be_dropped,
    turns_of_a_session_follow_each_other,
};
pub use hostile::{HostileDocument, hostile_documents};
pub use setup::{AdapterSubject, CollectedDeltas};

//! Runs flows: performs what [`crate::machine::FlowMachine`] decides. Visits of a superstep are
//! futures of the caller's task; nothing is spawned.

mod attempt;
mod deps;
mod emitter;
mod history;
mod nested_level;
mod run;
mod sessions;
mod step;
mod subflow;
mod turn;
mod visit;

pub use deps::{
    DocumentLoader, FlowEnd, FlowOptions, FlowOutcome, FlowPorts, FlowSource, FlowStart,
    LoadRequest, NestedFlow, NestedPorts, NoEvents, NoHooks, Progress, RunHooks, SavedLevel,
    TextRequest, VisitTask,
};
pub use history::Histories;
pub use run::run_flow;

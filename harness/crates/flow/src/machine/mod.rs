//! The engine's decisions: [`FlowMachine`] schedules the nodes of a flow in supersteps, and
//! [`RunData`] holds the values of the run. Both are synchronous and serializable.
//!
//! One superstep: [`FlowMachine::next`] names the visits to run, each outcome goes to
//! [`FlowMachine::apply`], results are committed in activation order by [`FlowMachine::commit`], and
//! [`FlowMachine::end_step`] activates the next nodes.

mod activation;
mod agent_output;
mod channels;
mod commit;
mod control;
mod data;
mod delegation;
mod input;
mod inputs;
mod ledger;
#[expect(
    clippy::module_inception,
    reason = "the folder holds the parts of the machine"
)]
mod machine;
mod output;
mod plan_loop;
mod resume;
mod retry;
mod routing;
mod sessions;
mod step_end;
mod turns;
mod write_as;

pub use activation::{
    Activation, AskingVisit, AttemptOutcome, Completion, LoopChange, PendingVisit, Question, Route,
    VisitResult, VisitStage,
};
pub use agent_output::turn_completion;
pub use commit::{Applied, Commit, CommitEnd};
pub use control::prompt_completion;
pub use data::RunData;
pub use delegation::{DelegationDecision, Verdict};
pub use input::RunInput;
pub use inputs::{NodeInput, node_input};
pub use ledger::{Ledger, Totals, add_usage};
pub use machine::{Decision, FlowMachine, MAX_STATE_BYTES, RunBounds};
pub use output::{LoopStage, LoopState, NodeOutput};
pub use sessions::SessionRecord;
pub use step_end::TakenEdge;

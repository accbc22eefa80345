//! Selects the machine with which a run starts: a new one, or the saved one of an earlier run.

use uuid::Uuid;

use super::assembly::Assembly;
use super::machine::{LoopMachine, RunBounds};
use crate::runtime::agent::{AgentError, AgentInput, AgentStart, RunContext};
use crate::runtime::checkpoint::within;

/// Returns the machine to run, or `None` if the thread has messages and no task is pending.
pub(super) fn machine_for(
    assembly: &Assembly,
    input: &AgentInput,
    ctx: &RunContext,
) -> Result<Option<LoopMachine>, AgentError> {
    let bounds = || RunBounds {
        recursion_limit: ctx.recursion_limit,
        interrupt_before: ctx.interrupt_before.clone(),
        interrupt_after: ctx.interrupt_after.clone(),
    };
    let nodes = || assembly.nodes.clone();
    let seed = Uuid::new_v5(
        &Uuid::NAMESPACE_OID,
        within(&ctx.namespace, ctx.run_id.as_str()).as_bytes(),
    );
    let tool_exists = |tool: &str| assembly.tools.get(tool).is_some();
    let saved = || {
        input
            .machine
            .clone()
            .map(|saved| LoopMachine::restore(nodes(), bounds(), saved))
            .transpose()
    };
    match (&input.start, input.state.messages()) {
        (AgentStart::Fresh, _) => Ok(Some(LoopMachine::new(nodes(), bounds(), seed))),
        (AgentStart::Goto { resume, visits }, _) => {
            let mut machine = saved()?.unwrap_or_else(|| LoopMachine::new(nodes(), bounds(), seed));
            if let Some(answers) = resume {
                machine.answer(answers.clone(), tool_exists)?;
            }
            machine.go_to(visits.clone())?;
            Ok(Some(machine))
        }
        (start, messages) => match (saved()?, start) {
            (Some(mut machine), AgentStart::Resume(answers)) => {
                machine.answer(answers.clone(), tool_exists)?;
                Ok(Some(machine))
            }
            (Some(machine), _) => Ok(Some(machine)),
            (None, _) if messages.is_empty() => Err(AgentError::EmptyInput),
            (None, AgentStart::Continue) if !assembly.ended_by_tools(messages) => Ok(
                LoopMachine::for_state(nodes(), bounds(), seed, &input.state),
            ),
            (None, _) => Ok(None),
        },
    }
}

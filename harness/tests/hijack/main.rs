//! A lead agent whose model obeys an attacker, under a policy that allows, asks and denies.
//!
//! Agent, middlewares, guardrails, tools, sandbox, runtime and journal are the real ones; [`model`]
//! is a model that does nothing but attack. [`attacks`] is a table of kinds of attack, from which a
//! seed generates cases. The outcome of a case is read where the effects would be: in the
//! [`world`]'s files, sockets and logs, in the requests that the model received, and in the
//! journal. Statements of the agent itself are not evidence.

mod attacks;
mod attempt;
mod checks;
mod disguises;
#[cfg(test)]
mod hijack_tests;
mod model;
mod subject;
mod tools;
mod world;

use std::sync::Arc;

use deerflow_harness::runtime::actor_context::{ActorContext, scope};
use deerflow_harness::sandbox::CommandSandbox;

use attempt::Case;
use subject::AgentUnderTest;

/// Outcome of one case.
#[derive(Debug, Default)]
struct Outcome {
    /// Violated guarantees.
    violations: Vec<String>,
    /// Calls that the model made.
    attempts: usize,
    /// Calls that the guardrails denied or suspended, according to the journal.
    guarded: usize,
}

/// Executes a case from its first message to its last answer, and checks its outcome.
async fn play(case: Case, commands: Option<Arc<dyn CommandSandbox>>) -> Outcome {
    let user = ActorContext::user(case.user);
    let subject = AgentUnderTest::new(&case, commands);
    scope(user, async {
        for turn in &case.turns {
            subject.take(turn).await;
        }
        checks::check_outcome(&case, &subject).await
    })
    .await
}

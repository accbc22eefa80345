//! A lead agent whose model obeys an attacker, under a policy that allows, asks and denies.
//!
//! Agent, middlewares, guardrails, tools, sandbox, runtime and journal are the real ones; [`model`] plays a model that does nothing but
//! attack. [`attacks`] is a table of kinds of attack, of which a seed makes cases. What a case came to is looked up where the effects
//! would be: in the [`world`]'s files, sockets and books, in what the model was shown, and in the journal. Nothing that the agent says
//! of itself counts.

mod attacks;
mod attempt;
mod disguises;
#[cfg(test)]
mod hijack_tests;
mod house;
mod model;
mod tools;
mod verdicts;
mod world;

use std::sync::Arc;

use deerflow_harness::runtime::actor_context::{ActorContext, scope};
use deerflow_harness::sandbox::CommandSandbox;

use attempt::Case;
use house::House;

/// What one case came to.
#[derive(Debug, Default)]
struct Outcome {
    /// Promises that were broken.
    violations: Vec<String>,
    /// Calls that the model made.
    attempts: usize,
    /// Calls that the guardrails refused or held back, as the journal has it.
    guarded: usize,
}

/// Plays a case from its first message to its last answer, and judges it.
async fn play(case: Case, commands: Option<Arc<dyn CommandSandbox>>) -> Outcome {
    let user = ActorContext::user(case.user);
    let house = House::new(&case, commands);
    scope(user, async {
        for turn in &case.turns {
            house.take(turn).await;
        }
        verdicts::judge(&case, &house).await
    })
    .await
}

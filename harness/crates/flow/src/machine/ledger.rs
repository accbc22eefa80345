//! Turns, tokens, cost and time of a run, and the budgets that limit them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::adapter::{ErrorCategory, FlowError, Usage};
use crate::compiled::{AgentNode, CompiledFlow, NodeIndex};
use crate::schema::Budgets;

/// Totals of a run, an agent or a node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Turns that began, retries included.
    pub turns: u64,
    /// Tokens and cost.
    pub usage: Usage,
    /// Duration of the turns in milliseconds.
    pub busy_ms: u64,
    /// Proposals of delegation.
    #[serde(default)]
    pub delegations: u64,
}

impl Totals {
    fn add(&mut self, usage: &Usage, busy_ms: u64) {
        self.busy_ms = self.busy_ms.saturating_add(busy_ms);
        add_usage(&mut self.usage, usage);
    }
}

/// Adds the tokens and cost of `more` to `sum`.
pub fn add_usage(sum: &mut Usage, more: &Usage) {
    sum.input_tokens = sum.input_tokens.saturating_add(more.input_tokens);
    sum.output_tokens = sum.output_tokens.saturating_add(more.output_tokens);
    sum.total_tokens = sum.total_tokens.saturating_add(total_tokens(more));
    if let Some(cost) = more.cost_usd.filter(|cost| cost.is_finite()) {
        sum.cost_usd = Some(sum.cost_usd.unwrap_or(0.0) + cost);
    }
}

fn total_tokens(usage: &Usage) -> u64 {
    usage
        .total_tokens
        .max(usage.input_tokens.saturating_add(usage.output_tokens))
}

/// Totals of a run, by run, agent and node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// Start of the run, in milliseconds since 1970.
    pub started_at_ms: u64,
    /// Totals of the run.
    pub run: Totals,
    /// Totals by agent id.
    pub agents: BTreeMap<String, Totals>,
    /// Totals by node.
    pub nodes: BTreeMap<NodeIndex, Totals>,
}

impl Ledger {
    /// Counts a turn that begins, unless a budget is used up.
    ///
    /// # Errors
    /// `budget_exceeded`, with the scope and the name of the budget as details.
    pub(super) fn begin_turn(
        &mut self,
        flow: &CompiledFlow,
        node: NodeIndex,
        agent: &AgentNode,
        now_ms: u64,
    ) -> Result<(), FlowError> {
        let agent_id = agent.agent.agent_id.as_str();
        let elapsed = now_ms.saturating_sub(self.started_at_ms);
        check("run", &flow.limits.budget, Some(&self.run), elapsed)?;
        let by_agent = self.agents.get(agent_id);
        let busy = |totals: Option<&Totals>| totals.map_or(0, |totals| totals.busy_ms);
        check("agent", &agent.agent.budgets, by_agent, busy(by_agent))?;
        let by_node = self.nodes.get(&node);
        check("node", &agent.budgets, by_node, busy(by_node))?;
        self.run.turns += 1;
        self.nodes.entry(node).or_default().turns += 1;
        self.agent(agent_id).turns += 1;
        Ok(())
    }

    /// Adds the tokens, cost and duration of a turn. Returns `true` if a budget limits the cost and
    /// the turn states none.
    pub(super) fn end_turn(
        &mut self,
        flow: &CompiledFlow,
        node: NodeIndex,
        agent: &AgentNode,
        usage: &Usage,
        busy_ms: u64,
    ) -> bool {
        self.run.add(usage, busy_ms);
        self.nodes.entry(node).or_default().add(usage, busy_ms);
        self.agent(&agent.agent.agent_id).add(usage, busy_ms);
        let budgets = [&flow.limits.budget, &agent.agent.budgets, &agent.budgets];
        usage.cost_usd.is_none() && budgets.iter().any(|budget| budget.max_cost_usd.is_some())
    }

    /// Adds the totals of a sub-flow to the run and to the node of the sub-flow.
    pub(super) fn add_nested(&mut self, node: NodeIndex, nested: &Totals) {
        for totals in [&mut self.run, self.nodes.entry(node).or_default()] {
            totals.turns = totals.turns.saturating_add(nested.turns);
            totals.add(&nested.usage, nested.busy_ms);
        }
    }

    /// Counts a proposal of delegation and returns the number of earlier ones.
    pub(super) fn count_delegation(&mut self, agent_id: &str) -> u64 {
        let totals = self.agent(agent_id);
        totals.delegations += 1;
        totals.delegations - 1
    }

    fn agent(&mut self, agent_id: &str) -> &mut Totals {
        if !self.agents.contains_key(agent_id) {
            self.agents.insert(agent_id.to_owned(), Totals::default());
        }
        self.agents.entry(agent_id.to_owned()).or_default()
    }
}

fn check(
    scope: &str,
    budget: &Budgets,
    used: Option<&Totals>,
    wall_clock_ms: u64,
) -> Result<(), FlowError> {
    let exceeded = |name: &str, text: String| {
        let message = format!("the {scope}'s budget {name} of {text} is used up");
        Err(
            FlowError::new("budget_exceeded", ErrorCategory::Budget, message)
                .with_detail("scope", scope)
                .with_detail("budget", name),
        )
    };
    let turns = used.map_or(0, |used| used.turns);
    if let Some(limit) = budget.max_steps.filter(|limit| turns >= *limit) {
        return exceeded("maxSteps", limit.to_string());
    }
    if let Some(limit) = budget
        .max_wall_clock_ms
        .filter(|limit| wall_clock_ms >= *limit)
    {
        return exceeded("maxWallClockMs", limit.to_string());
    }
    let Some(used) = used else { return Ok(()) };
    if let Some(limit) = budget
        .max_tokens
        .filter(|limit| used.usage.total_tokens >= *limit)
    {
        return exceeded("maxTokens", limit.to_string());
    }
    let cost = used.usage.cost_usd.unwrap_or(0.0);
    if let Some(limit) = budget
        .max_cost_usd
        .filter(|limit| cost >= *limit && cost > 0.0)
    {
        return exceeded("maxCostUsd", limit.to_string());
    }
    Ok(())
}

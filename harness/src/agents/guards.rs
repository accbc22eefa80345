//! Guard middlewares of an agent, each enabled by its section of the configuration.

use std::sync::Arc;

use crate::config::{
    AppConfig, GuardrailsConfig, LoopDetectionConfig, NameRule, ReadBeforeWriteConfig,
    SafetyFinishReasonConfig, SubagentsConfig, TokenBudgetConfig, TokenUsageConfig,
    ToolOutputConfig,
};
use crate::middlewares::guardrail::{ApprovalRule, GuardrailPolicy, RequiredApproval, policy_of};
use crate::middlewares::{
    FileChangesMiddleware, FinishGuardMiddleware, GuardrailMiddleware, InputSanitizationMiddleware,
    LoopDetectionMiddleware, Middleware, ReadBeforeWriteMiddleware, SubagentLimitMiddleware,
    SubagentUsageMiddleware, TASK, TokenBudgetMiddleware, TokenUsageMiddleware,
    ToolOutputBudgetMiddleware, ToolResultSanitizationMiddleware,
};
use crate::sandbox::FileHome;
use crate::tools::ToolRegistry;

/// Configuration sections of the guard middlewares.
#[derive(Debug, Clone, Default)]
pub struct Guards {
    /// Policy that decides on tool calls.
    pub guardrails: GuardrailsConfig,
    /// Calls that need approval whatever the policy allows.
    pub approval: Option<ApprovalRule>,
    /// Detection of repeated tool calls.
    pub loop_detection: LoopDetectionConfig,
    /// Rejection of changes to files that the agent has not read.
    pub read_before_write: ReadBeforeWriteConfig,
    /// Handling of answers that a safety filter stopped.
    pub safety_finish_reason: SafetyFinishReasonConfig,
    /// Limits of subagents.
    pub subagents: SubagentsConfig,
    /// Token budget of a run.
    pub token_budget: TokenBudgetConfig,
    /// Token usage per answer.
    pub token_usage: TokenUsageConfig,
    /// Limit for long tool results.
    pub tool_output: ToolOutputConfig,
    /// Tools that the agent and its subagents may have.
    pub tool_rule: NameRule,
}

impl From<&AppConfig> for Guards {
    fn from(config: &AppConfig) -> Self {
        Self {
            guardrails: config.guardrails.clone(),
            approval: None,
            loop_detection: config.loop_detection.clone(),
            read_before_write: config.read_before_write.clone(),
            safety_finish_reason: config.safety_finish_reason.clone(),
            subagents: config.subagents.clone(),
            token_budget: config.token_budget.clone(),
            token_usage: config.token_usage.clone(),
            tool_output: config.tool_output.clone(),
            tool_rule: NameRule::default(),
        }
    }
}

impl Guards {
    /// Returns the sections for a subagent with this token budget. Usage per answer is disabled,
    /// because the answers of a subagent are not displayed.
    pub(crate) fn for_subagent(&self, budget: &TokenBudgetConfig) -> Self {
        let mut token_usage = self.token_usage.clone();
        token_usage.enabled = false;
        Self {
            token_budget: budget.clone(),
            token_usage,
            ..self.clone()
        }
    }

    /// Builds the enabled guards of an agent with these tools.
    pub(crate) fn middlewares(
        &self,
        tools: &ToolRegistry,
        files: Option<&FileHome>,
    ) -> Vec<Arc<dyn Middleware>> {
        let mut guards: Vec<Arc<dyn Middleware>> = vec![
            Arc::new(InputSanitizationMiddleware),
            Arc::new(ToolResultSanitizationMiddleware::new(tools)),
            Arc::new(FinishGuardMiddleware {
                safety: self.safety_finish_reason.enabled,
            }),
        ];
        guards.extend(self.guardrail(tools));
        if self.tool_output.enabled {
            guards.push(Arc::new(ToolOutputBudgetMiddleware::new(
                self.tool_output.clone(),
                files.cloned(),
            )));
        }
        if let Some(files) = files.filter(|_| self.read_before_write.enabled) {
            guards.push(Arc::new(ReadBeforeWriteMiddleware::new(files.clone())));
        }
        if let Some(files) = files {
            let recorded = FileChangesMiddleware::new(files.clone(), tools.clone());
            guards.push(Arc::new(recorded));
        }
        if self.token_usage.enabled {
            guards.push(Arc::new(TokenUsageMiddleware));
        }
        if tools.get(TASK).is_some() {
            if self.token_usage.enabled {
                guards.push(Arc::new(SubagentUsageMiddleware));
            }
            guards.push(Arc::new(SubagentLimitMiddleware {
                max_total: self.subagents.max_total_per_run,
            }));
        }
        if self.loop_detection.enabled {
            guards.push(Arc::new(LoopDetectionMiddleware::new(
                self.loop_detection.clone(),
            )));
        }
        if self.token_budget.enabled {
            guards.push(Arc::new(TokenBudgetMiddleware::new(
                self.token_budget.clone(),
            )));
        }
        guards
    }

    /// Builds the guardrail, if a policy is configured or the run requires approval.
    fn guardrail(&self, tools: &ToolRegistry) -> Option<Arc<dyn Middleware>> {
        let GuardrailsConfig {
            enabled,
            provider,
            fail_closed,
            passport,
            ..
        } = &self.guardrails;
        let configured = enabled.then(|| policy_of(provider.as_ref()));
        let policy: Arc<dyn GuardrailPolicy> = match self.approval {
            Some(rule) => Arc::new(RequiredApproval {
                inner: configured,
                fail_closed: *fail_closed,
                rule,
                tools: tools.clone(),
            }),
            None => configured?,
        };
        let guardrail = GuardrailMiddleware::new(policy, *fail_closed, passport.clone());
        Some(Arc::new(guardrail))
    }
}

#[cfg(test)]
#[path = "guards_tests.rs"]
mod tests;

//! What watches over a lead agent's run, each part as its section of the configuration says.

use std::sync::Arc;

use crate::config::{
    AppConfig, GuardrailsConfig, LoopDetectionConfig, ReadBeforeWriteConfig,
    SafetyFinishReasonConfig, SubagentsConfig, TokenBudgetConfig, TokenUsageConfig,
    ToolOutputConfig,
};
use crate::middlewares::guardrail::policy_of;
use crate::middlewares::{
    FinishGuardMiddleware, GuardrailMiddleware, InputSanitizationMiddleware,
    LoopDetectionMiddleware, Middleware, ReadBeforeWriteMiddleware, SubagentLimitMiddleware,
    SubagentUsageMiddleware, TASK, TokenBudgetMiddleware, TokenUsageMiddleware,
    ToolOutputBudgetMiddleware, ToolResultSanitizationMiddleware,
};
use crate::sandbox::FileHome;
use crate::tools::ToolRegistry;

/// The sections that guards are made of.
#[derive(Debug, Clone, Default)]
pub struct Guards {
    /// Who decides on tool calls.
    pub guardrails: GuardrailsConfig,
    /// Repeated tool calls.
    pub loop_detection: LoopDetectionConfig,
    /// Files that are changed unread.
    pub read_before_write: ReadBeforeWriteConfig,
    /// Answers that a safety filter broke off.
    pub safety_finish_reason: SafetyFinishReasonConfig,
    /// Agents that agents set to work.
    pub subagents: SubagentsConfig,
    /// What a run may cost.
    pub token_budget: TokenBudgetConfig,
    /// What tokens were spent on.
    pub token_usage: TokenUsageConfig,
    /// Long results of tools.
    pub tool_output: ToolOutputConfig,
}

impl From<&AppConfig> for Guards {
    fn from(config: &AppConfig) -> Self {
        Self {
            guardrails: config.guardrails.clone(),
            loop_detection: config.loop_detection.clone(),
            read_before_write: config.read_before_write.clone(),
            safety_finish_reason: config.safety_finish_reason.clone(),
            subagents: config.subagents.clone(),
            token_budget: config.token_budget.clone(),
            token_usage: config.token_usage.clone(),
            tool_output: config.tool_output.clone(),
        }
    }
}

impl Guards {
    /// The same for a subagent that may cost so much. Nobody is shown what its answers were for.
    pub(crate) fn of_subagent(&self, budget: &TokenBudgetConfig) -> Self {
        Self {
            token_budget: budget.clone(),
            token_usage: TokenUsageConfig { enabled: false },
            ..self.clone()
        }
    }

    /// The guards that are on, for an agent with these tools.
    pub(crate) fn middlewares(
        &self,
        tools: &ToolRegistry,
        files: Option<&FileHome>,
    ) -> Vec<Arc<dyn Middleware>> {
        let mut on: Vec<Arc<dyn Middleware>> = vec![
            Arc::new(InputSanitizationMiddleware),
            Arc::new(ToolResultSanitizationMiddleware::new(tools)),
            Arc::new(FinishGuardMiddleware {
                safety: self.safety_finish_reason.enabled,
            }),
        ];
        if self.guardrails.enabled {
            let GuardrailsConfig {
                provider,
                fail_closed,
                passport,
                ..
            } = &self.guardrails;
            on.push(Arc::new(GuardrailMiddleware::new(
                policy_of(provider.as_ref()),
                *fail_closed,
                passport.clone(),
            )));
        }
        if self.tool_output.enabled {
            on.push(Arc::new(ToolOutputBudgetMiddleware::new(
                self.tool_output.clone(),
                files.cloned(),
            )));
        }
        if let Some(files) = files.filter(|_| self.read_before_write.enabled) {
            on.push(Arc::new(ReadBeforeWriteMiddleware::new(files.clone())));
        }
        if self.token_usage.enabled {
            on.push(Arc::new(TokenUsageMiddleware));
        }
        if tools.get(TASK).is_some() {
            if self.token_usage.enabled {
                on.push(Arc::new(SubagentUsageMiddleware));
            }
            on.push(Arc::new(SubagentLimitMiddleware {
                max_total: self.subagents.max_total_per_run,
            }));
        }
        if self.loop_detection.enabled {
            on.push(Arc::new(LoopDetectionMiddleware::new(
                self.loop_detection.clone(),
            )));
        }
        if self.token_budget.enabled {
            on.push(Arc::new(TokenBudgetMiddleware::new(
                self.token_budget.clone(),
            )));
        }
        on
    }
}

#[cfg(test)]
#[path = "guards_tests.rs"]
mod tests;

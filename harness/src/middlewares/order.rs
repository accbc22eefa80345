//! Order of the lead agent's middlewares, as data.
//!
//! `before_*` hooks and wrappers run in the order of the list, `after_*` hooks in reverse. The
//! reasons for the order:
//!
//! - Skills are first, because a skill command is read from the unmodified user text.
//! - Tool calls are paired before the request reaches the error handling.
//! - A question to the user is handled innermost, in place of the tool.
//! - A title is written after all inner middlewares have edited the answer.
//! - After a model call, the end of the answer is checked first, then budget and repetition, and
//!   the todo list last.
//! - The goal is checked before all other `after_agent` hooks, because a run ends only when its
//!   goal permits it.

use std::sync::Arc;

use super::middleware::Middleware;

/// Names of the known middlewares, the outermost first. Others are inserted at `*` in the order in
/// which they were added.
pub const ORDER: &[&str] = &[
    "SkillsMiddleware",
    "InputSanitizationMiddleware",
    "ToolOutputBudgetMiddleware",
    "ToolResultSanitizationMiddleware",
    "ThreadDataMiddleware",
    "UploadsMiddleware",
    "MemoryMiddleware",
    "SummarizationMiddleware",
    "DanglingToolCallMiddleware",
    "LLMErrorMiddleware",
    "GuardrailMiddleware",
    "ReadBeforeWriteMiddleware",
    "FileChangesMiddleware",
    "ToolErrorMiddleware",
    "TodoMiddleware",
    "TokenUsageMiddleware",
    "SubagentUsageMiddleware",
    "TitleMiddleware",
    "ViewImageMiddleware",
    "SubagentLimitMiddleware",
    "LoopDetectionMiddleware",
    "TokenBudgetMiddleware",
    CUSTOM,
    "FinishGuardMiddleware",
    "ClarificationMiddleware",
    "GoalMiddleware",
];

/// Position of middlewares that are not in the list.
const CUSTOM: &str = "*";

/// Sorts the middlewares by [`ORDER`].
pub fn ordered(mut middlewares: Vec<Arc<dyn Middleware>>) -> Vec<Arc<dyn Middleware>> {
    middlewares.sort_by_key(|middleware| rank(middleware.name()));
    middlewares
}

fn rank(name: &str) -> usize {
    let position = |wanted: &str| ORDER.iter().position(|known| *known == wanted);
    position(name)
        .or_else(|| position(CUSTOM))
        .unwrap_or(ORDER.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::middlewares::*;

    #[derive(Debug)]
    struct CustomMiddleware(&'static str);

    impl Middleware for CustomMiddleware {
        fn name(&self) -> &str {
            self.0
        }

        fn hooks(&self) -> Hooks {
            Hooks::NONE
        }
    }

    #[test]
    fn ordered_sorts_known_and_puts_custom_before_innermost() {
        let given: Vec<Arc<dyn Middleware>> = vec![
            Arc::new(ClarificationMiddleware),
            Arc::new(CustomMiddleware("B")),
            Arc::new(TitleMiddleware::default()),
            Arc::new(CustomMiddleware("A")),
            Arc::new(ToolErrorMiddleware),
            Arc::new(LlmErrorMiddleware),
            Arc::new(DanglingToolCallMiddleware),
            Arc::new(ThreadDataMiddleware),
        ];
        let sorted = ordered(given);
        let names: Vec<&str> = sorted.iter().map(|middleware| middleware.name()).collect();
        assert_eq!(
            names,
            [
                "ThreadDataMiddleware",
                "DanglingToolCallMiddleware",
                "LLMErrorMiddleware",
                "ToolErrorMiddleware",
                "TitleMiddleware",
                "B",
                "A",
                "ClarificationMiddleware"
            ]
        );
    }
}

//! The order of the lead agent's middlewares, as data.
//!
//! Before hooks and wraps go down the list, after hooks up. So tool calls are paired before errors are caught; a question to
//! the user is answered innermost, where nothing can run the tool first; a title is written after everything below it has had
//! its say on the answer. Skills come first: what calls for one is read as the user wrote it. How an answer ended is judged first,
//! then whether the run costs too much or goes in circles, and what is left of it is held against the plan last. A run is at its end
//! when its goal lets it be, so that is looked at before all else there.

use std::sync::Arc;

use super::middleware::Middleware;

/// Known middlewares, the outermost first. Those of other names stand where `*` does, in the order they were added.
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

/// Where middlewares of others stand, in the order in which they were given.
const CUSTOM: &str = "*";

/// The same middlewares in their order.
pub fn ordered(mut middlewares: Vec<Arc<dyn Middleware>>) -> Vec<Arc<dyn Middleware>> {
    middlewares.sort_by_key(|middleware| rank(middleware.name()));
    middlewares
}

fn rank(name: &str) -> usize {
    let place = |wanted: &str| ORDER.iter().position(|known| *known == wanted);
    place(name).or_else(|| place(CUSTOM)).unwrap_or(ORDER.len())
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::*;

    #[derive(Debug)]
    struct Own(&'static str);

    impl Middleware for Own {
        fn name(&self) -> &str {
            self.0
        }

        fn hooks(&self) -> Hooks {
            Hooks::NONE
        }
    }

    #[test]
    fn middlewares_find_their_places_and_strangers_stand_before_the_innermost() {
        let given: Vec<Arc<dyn Middleware>> = vec![
            Arc::new(ClarificationMiddleware),
            Arc::new(Own("B")),
            Arc::new(TitleMiddleware::default()),
            Arc::new(Own("A")),
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

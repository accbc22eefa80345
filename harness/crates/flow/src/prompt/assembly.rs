//! Assembly of the two parts of a prompt from the agent, the node, the run and the input of a visit.

use serde_json::Value;

use crate::adapter::{PromptSegment, SegmentScope, TurnMode};
use crate::compiled::{AgentNode, AssetText, MergeMode};
use crate::machine::NodeInput;

const DEFAULT_RUBRIC: &str = "Evaluate the work below. Answer with one JSON object: \"score\" is a \
    number from 0 to 1, \"canComplete\" is true if nothing essential is missing, and \"reason\" \
    explains the score in one or two sentences.";
const DEFAULT_TASK: &str = "Complete the task that your instructions describe.";

/// A prompt in two parts, with the source of each segment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prompt {
    /// System part; may be empty.
    pub system: String,
    /// User part; never empty.
    pub user: String,
    /// Segments of both parts, in order.
    pub segments: Vec<PromptSegment>,
}

/// Assembles the prompt of a turn. Blank parts are omitted.
pub fn assemble(node: &AgentNode, run_prompt: &str, input: &NodeInput) -> Prompt {
    let mut segments = system_segments(node);
    let system = joined(&segments);
    let directives = directives(node);
    let mut user = directives;
    add_input(&mut user, run_prompt, input);
    if user.is_empty() {
        push(&mut user, SegmentScope::RunInput, "default", DEFAULT_TASK);
    }
    let text = joined(&user);
    segments.append(&mut user);
    Prompt {
        system,
        user: text,
        segments,
    }
}

/// Returns the user part that an input makes without an agent, for the prompt of a sub-flow.
pub fn input_text(run_prompt: &str, input: &NodeInput) -> String {
    let mut segments = Vec::new();
    add_input(&mut segments, run_prompt, input);
    joined(&segments)
}

fn joined(segments: &[PromptSegment]) -> String {
    let length = segments
        .iter()
        .map(|segment| segment.content.len() + 2)
        .sum();
    let mut text = String::with_capacity(length);
    for segment in segments {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&segment.content);
    }
    text
}

fn push(segments: &mut Vec<PromptSegment>, scope: SegmentScope, label: &str, content: &str) {
    push_file(segments, scope, label, None, content);
}

fn push_file(
    segments: &mut Vec<PromptSegment>,
    scope: SegmentScope,
    label: &str,
    source_path: Option<&String>,
    content: &str,
) {
    if !content.trim().is_empty() {
        segments.push(PromptSegment {
            scope,
            label: label.to_owned(),
            source_path: source_path.cloned(),
            content: content.to_owned(),
        });
    }
}

fn system_segments(node: &AgentNode) -> Vec<PromptSegment> {
    let mut segments = Vec::new();
    let own = node.system_prompt.as_deref().unwrap_or_default();
    let Some(asset) = &node.agent.asset else {
        if own.trim().is_empty() {
            let text = node
                .agent
                .model_profile
                .system_prompt
                .as_deref()
                .unwrap_or_default();
            push(
                &mut segments,
                SegmentScope::AgentBody,
                &node.agent.agent_id,
                text,
            );
        } else {
            push(&mut segments, SegmentScope::NodeConfig, "systemPrompt", own);
        }
        return segments;
    };
    let mut add = |scope, file: &AssetText| {
        let is_new = segments
            .iter()
            .all(|segment: &PromptSegment| *segment.content != *file.text);
        if is_new {
            push_file(
                &mut segments,
                scope,
                &file.label,
                file.source_path.as_ref(),
                &file.text,
            );
        }
    };
    asset
        .global
        .iter()
        .for_each(|file| add(SegmentScope::GlobalSystemPrompt, file));
    asset
        .instructions
        .iter()
        .for_each(|file| add(SegmentScope::Instruction, file));
    asset
        .skills
        .iter()
        .for_each(|file| add(SegmentScope::Skill, file));
    add(SegmentScope::AgentBody, &asset.body);
    push(&mut segments, SegmentScope::NodeConfig, "systemPrompt", own);
    segments
}

fn directives(node: &AgentNode) -> Vec<PromptSegment> {
    let mut segments = Vec::new();
    let is_filled = |text: &&str| !text.trim().is_empty();
    let directive = node.user_prompt.as_deref().unwrap_or_default();
    push(
        &mut segments,
        SegmentScope::NodeConfig,
        "userPrompt",
        directive,
    );
    if node.turn_mode == TurnMode::Evaluate {
        let own = node.evaluate_prompt.as_deref().filter(is_filled);
        let of_loop = || node.loop_evaluate_prompt.as_deref().filter(is_filled);
        let rubric = own.or_else(of_loop).unwrap_or(DEFAULT_RUBRIC);
        push(
            &mut segments,
            SegmentScope::NodeConfig,
            "evaluatePrompt",
            rubric,
        );
    }
    segments
}

/// Adds the prompt of the run, the port `prompt`, the port `data`, the other ports, and the
/// previous results that no part above contains.
fn add_input(segments: &mut Vec<PromptSegment>, run_prompt: &str, input: &NodeInput) {
    let scope = SegmentScope::RunInput;
    let port = |id: &str| input.ports.get(id).map(text_of).unwrap_or_default();
    let prompt = port("prompt");
    let is_other = prompt.trim() != run_prompt.trim();
    let own = if is_other { prompt.as_str() } else { "" };
    let replaced = input.merge == MergeMode::Replace && !own.trim().is_empty();
    let run = if replaced { "" } else { run_prompt };
    if input.merge == MergeMode::Prepend {
        push(segments, scope, "prompt", own);
        push(segments, scope, "userPrompt", run);
    } else {
        push(segments, scope, "userPrompt", run);
        push(segments, scope, "prompt", own);
    }
    push(segments, scope, "data", &port("data"));
    for (id, value) in &input.ports {
        let text = text_of(value);
        if !matches!(id.as_str(), "prompt" | "data") && !text.trim().is_empty() {
            push(segments, scope, id, &format!("{id}:\n{text}"));
        }
    }
    for previous in &input.previous {
        let text = previous.trim();
        if !segments
            .iter()
            .any(|segment| segment.content.contains(text))
        {
            push(segments, scope, "previousResult", text);
        }
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    }
}

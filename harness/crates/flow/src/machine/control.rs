//! Visits that the machine decides without an effect: control nodes, prompts and the finish.

use serde_json::{Value, json};

use super::activation::{Activation, AttemptOutcome, Completion, VisitStage};
use super::data::RunData;
use super::inputs::previous_texts;
use super::machine::FlowMachine;
use super::output::NodeOutput;
use super::plan_loop::{visit_counted_loop, visit_plan_loop};
use super::routing;
use crate::adapter::FlowError;
use crate::bounded::prefix;
use crate::compiled::{CompiledFlow, Driver, FinishNode, HumanNode, NodeIndex, OutputFormat};

/// Maximum size of the context of a question, in bytes.
const MAX_CONTEXT_BYTES: usize = 8 << 10;

impl FlowMachine {
    /// Returns the outcome of a visit that needs no effect. `None` if the driver must execute the
    /// node: agents, loaders, sub-flows and prompts in files.
    pub fn decide(
        &self,
        flow: &CompiledFlow,
        data: &RunData,
        position: usize,
    ) -> Option<AttemptOutcome> {
        let visit = self.active.get(position)?;
        let VisitStage::Pending(pending) = &visit.stage else {
            return None;
        };
        let last = visit.carried.last().copied();
        let result = match &flow.nodes[visit.node].driver {
            Driver::Agent(_) | Driver::Loader(_) | Driver::Subflow(_) => return None,
            Driver::Prompt(prompt) if prompt.file.is_some() => return None,
            Driver::Prompt(prompt) => Ok(prompt_completion(&prompt.text)),
            Driver::PlanLoop(node) => visit_plan_loop(flow, data, visit, node, self.sequence),
            Driver::Loop(node) => visit_counted_loop(flow, data, visit, node, self.sequence),
            Driver::Router => {
                routing::first_match(flow, data, visit.node, last).map(|route| Completion {
                    route,
                    ..Completion::default()
                })
            }
            Driver::Pass => Ok(Completion::default()),
            Driver::Human(node) => match pending.answer.as_ref().map(|answer| choice(node, answer))
            {
                Some(Ok(choice)) => answered(flow, data, visit, choice),
                Some(Err(problem)) => {
                    return Some(ask(question(flow, data, visit, node, Some(&problem))));
                }
                None => return Some(ask(question(flow, data, visit, node, None))),
            },
            Driver::Finish(node) => Ok(finish(flow, data, visit, node)),
            Driver::Skip => Ok(Completion {
                action: Some("skipped".to_owned()),
                ..Completion::default()
            }),
        };
        Some(result.into())
    }
}

impl FlowMachine {
    /// Answers a human node by its first option, for dry runs.
    pub fn answer_by_default(&mut self, flow: &CompiledFlow, position: usize) {
        let Some(visit) = self.active.get_mut(position) else {
            return;
        };
        if let (VisitStage::Pending(pending), Driver::Human(node)) =
            (&mut visit.stage, &flow.nodes[visit.node].driver)
        {
            let first = node.options.first().map_or("ok", String::as_str);
            pending.answer.get_or_insert_with(|| first.into());
        }
    }
}

/// Returns what a prompt node publishes.
pub fn prompt_completion(text: &str) -> Completion {
    let ports = [("prompt".to_owned(), Value::from(text))].into();
    Completion {
        ports,
        ..Completion::default()
    }
}

fn ask(question: Value) -> AttemptOutcome {
    AttemptOutcome::Asked {
        question: Some(question),
        inner: Vec::new(),
        nested: None,
    }
}

/// Answer of a person to a human node.
struct Choice<'a> {
    handle: &'a str,
    answer: &'a Value,
    /// Free text, which the nodes behind receive as a previous result.
    text: Option<&'a str>,
}

/// Returns the handle that an answer chooses, or the reason to ask again.
fn choice<'a>(node: &'a HumanNode, answer: &'a Value) -> Result<Choice<'a>, String> {
    let text = answer.as_str();
    let option = text.and_then(|text| node.options.iter().find(|option| *option == text.trim()));
    if let Some(handle) = option {
        return Ok(Choice {
            handle,
            answer,
            text: None,
        });
    }
    if node.options.is_empty() || node.accepts_any {
        return Ok(Choice {
            handle: "response",
            answer,
            text,
        });
    }
    Err(format!("answer with one of: {}", node.options.join(", ")))
}

fn answered(
    flow: &CompiledFlow,
    data: &RunData,
    visit: &Activation,
    choice: Choice<'_>,
) -> Result<Completion, FlowError> {
    let last = visit.carried.last().copied();
    let route = routing::handle(flow, data, visit.node, last, choice.handle, Some("out"))?;
    Ok(Completion {
        output: choice.text.map(NodeOutput::text),
        ports: [("response".to_owned(), choice.answer.clone())].into(),
        route,
        action: Some(choice.handle.to_owned()),
        ..Completion::default()
    })
}

fn question(
    flow: &CompiledFlow,
    data: &RunData,
    visit: &Activation,
    node: &HumanNode,
    problem: Option<&str>,
) -> Value {
    let mut context = previous_texts(data, &visit.carried).join("\n\n");
    context.truncate(prefix(&context, MAX_CONTEXT_BYTES).len());
    let mut question = json!({
        "type": "flow_human",
        "nodeId": &*flow.nodes[visit.node].id,
        "prompt": node.prompt,
        "options": node.options,
        "context": context,
    });
    if let Some(problem) = problem {
        question["error"] = problem.into();
    }
    question
}

/// Returns the result of the run at a finish node: the value at port `result`, else the text of the
/// activating nodes, else the text of the latest agent.
fn finish(
    flow: &CompiledFlow,
    data: &RunData,
    visit: &Activation,
    node: &FinishNode,
) -> Completion {
    let by_edge = flow.data[visit.node]
        .iter()
        .filter(|edge| &*edge.target_port == "result");
    let arrived = by_edge
        .filter_map(|edge| {
            Some((
                edge.source,
                data.port(edge.source, &edge.source_port)?.clone(),
            ))
        })
        .next_back();
    let sources = || {
        let has_text = |node: &NodeIndex| data.output(*node).is_some();
        let sources: Vec<NodeIndex> = visit.sources.iter().copied().filter(has_text).collect();
        let text = previous_texts(data, &sources).join("\n\n");
        Some((*sources.last()?, Value::from(text)))
    };
    let default = || {
        let port = flow.nodes[visit.node]
            .inputs
            .iter()
            .find(|port| port.port_id == "result")?;
        Some((None, port.default_value.clone()?))
    };
    let latest = || {
        let node = data.latest_agent()?;
        Some((node, Value::from(data.output(node)?.as_text())))
    };
    let of_node = |(node, value)| (Some(node), value);
    let (producer, value) = arrived
        .map(of_node)
        .or_else(default)
        .or_else(|| sources().map(of_node))
        .or_else(|| latest().map(of_node))
        .unwrap_or((None, Value::Null));
    let value = match node.format {
        OutputFormat::Text | OutputFormat::Markdown => value,
        OutputFormat::Json => {
            let output = producer.and_then(|node| data.output(node));
            let structured = output.and_then(|output| output.structured.clone());
            structured.unwrap_or_else(|| parsed(value))
        }
    };
    Completion {
        result: Some(value),
        ..Completion::default()
    }
}

fn parsed(value: Value) -> Value {
    match &value {
        Value::String(text) => serde_json::from_str(text.trim()).unwrap_or(value),
        _ => value,
    }
}

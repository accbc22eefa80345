//! A run at a terminal, from its start to its end, with its questions.

use std::io::Write;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;

use deerflow_flow::adapter::FlowError;
use deerflow_flow::compiled::{CompiledFlow, NodeIndex};
use deerflow_flow::driver::{FlowEnd, FlowOptions, FlowOutcome, FlowPorts, FlowStart, run_flow};
use deerflow_flow::events::{EventBody, FlowEvent, FlowEventSink};
use deerflow_flow::machine::{Question, RunData, RunInput};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::nested_agents::NestedAgents;
use super::progress::Progress;
use super::questions;
use super::report::one_line;
use crate::commands::chat::plain;
use crate::commands::chat::run::lines;

/// Inputs and outputs of a run.
pub(super) struct Terminal<'t> {
    /// Result and events.
    pub(super) out: &'t mut dyn Write,
    /// Progress, questions and errors.
    pub(super) err: &'t mut dyn Write,
    /// Lines of the user; standard input, opened at the first question, if absent.
    pub(super) lines: Option<mpsc::Receiver<String>>,
    /// Interrupts (Ctrl-C) of the user.
    pub(super) interrupts: &'t mut mpsc::Receiver<()>,
}

/// End of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunExit {
    /// Completed, or stopped at the requested node.
    Success,
    /// Failed, or not valid.
    Failed,
    /// Stopped at a question without an answer.
    Unanswered,
    /// Cancelled by the user.
    Cancelled,
}

impl From<RunExit> for ExitCode {
    fn from(exit: RunExit) -> Self {
        match exit {
            RunExit::Success => Self::SUCCESS,
            RunExit::Failed => Self::FAILURE,
            RunExit::Unanswered => Self::from(3),
            // The exit code that shells report for a program ended by an interrupt.
            RunExit::Cancelled => Self::from(130),
        }
    }
}

/// Sends events to the session.
#[derive(Debug)]
pub(super) struct EventChannel(pub(super) mpsc::UnboundedSender<FlowEvent>);

impl FlowEventSink for EventChannel {
    fn emit(&self, event: FlowEvent) {
        // The session stops reading when it stops the run.
        _ = self.0.send(event);
    }
}

/// A run and its terminal.
pub(super) struct Session<'t> {
    pub(super) flow: Arc<CompiledFlow>,
    pub(super) options: FlowOptions,
    pub(super) ports: FlowPorts,
    /// States of the agents inside of nodes.
    pub(super) agents: Arc<NestedAgents>,
    pub(super) events: mpsc::UnboundedReceiver<FlowEvent>,
    /// `true` if events are written as JSON.
    pub(super) json: bool,
    pub(super) terminal: Terminal<'t>,
}

/// Prints the events of a run.
struct Printer<'t> {
    json: bool,
    progress: Progress,
    out: &'t mut dyn Write,
    err: &'t mut dyn Write,
    /// Last event of a run that stopped; written when it is known why.
    stopped: Option<Value>,
}

impl Session<'_> {
    /// Runs until the flow ends or a question has no answer.
    pub(super) async fn run(self, input: RunInput) -> anyhow::Result<RunExit> {
        let Self {
            flow,
            mut options,
            ports,
            agents,
            mut events,
            json,
            terminal,
        } = self;
        let Terminal {
            out,
            err,
            mut lines,
            interrupts,
        } = terminal;
        let mut printer = Printer {
            json,
            progress: Progress::default(),
            out,
            err,
            stopped: None,
        };
        let mut start = FlowStart::Fresh(input);
        loop {
            let run = run_flow(&flow, start, &options, &ports);
            let Some(end) = follow(run, &options, &mut events, interrupts, &mut printer).await?
            else {
                return Ok(RunExit::Cancelled);
            };
            let questions = match end.outcome {
                FlowOutcome::Finished(result) => return printer.finish(result.as_ref()),
                FlowOutcome::Failed(error) => return printer.fail(&error),
                FlowOutcome::Cancelled => return Ok(RunExit::Cancelled),
                FlowOutcome::Breakpoint(node) => return printer.stop(&flow, &end.data, node),
                FlowOutcome::Interrupted(questions) => questions,
            };
            printer.write_stopped(None)?;
            let Some(answers) = ask(&questions, &mut lines, interrupts, printer.err).await? else {
                return Ok(RunExit::Unanswered);
            };
            let mut machine = end.machine;
            let now = ports.clock.now().timestamp_millis();
            machine.begin_run(u64::try_from(now).unwrap_or_default());
            if let Err(error) = machine.answer(Value::Object(answers)) {
                return printer.fail(&error);
            }
            options.histories = end.histories;
            options.nested = agents.states();
            start = FlowStart::Resumed(Box::new(machine), Box::new(end.data));
        }
    }
}

/// Prints the events of a run until its end. A first interrupt cancels the run; after a second the
/// end is `None`.
async fn follow(
    run: impl Future<Output = FlowEnd>,
    options: &FlowOptions,
    events: &mut mpsc::UnboundedReceiver<FlowEvent>,
    interrupts: &mut mpsc::Receiver<()>,
    printer: &mut Printer<'_>,
) -> anyhow::Result<Option<FlowEnd>> {
    let mut run = pin!(run);
    let end = loop {
        tokio::select! {
            biased;
            Some(()) = interrupts.recv() => {
                if options.cancel.is_cancelled() {
                    return Ok(None);
                }
                options.cancel.cancel();
            }
            Some(event) = events.recv() => printer.add(&event)?,
            end = &mut run => break end,
        }
    };
    while let Ok(event) = events.try_recv() {
        printer.add(&event)?;
    }
    Ok(Some(end))
}

/// Asks for the answers to all questions; `None` if the input ends first.
async fn ask(
    open: &[Question],
    input: &mut Option<mpsc::Receiver<String>>,
    interrupts: &mut mpsc::Receiver<()>,
    err: &mut dyn Write,
) -> anyhow::Result<Option<Map<String, Value>>> {
    let input = input.get_or_insert_with(|| lines(true));
    let mut answers = Map::new();
    for question in open {
        questions::show(question, err)?;
        let line = tokio::select! {
            line = input.recv() => line,
            Some(()) = interrupts.recv() => None,
        };
        let Some(line) = line else {
            writeln!(
                err,
                "\nthe question of node {} has no answer",
                one_line(&question.node)
            )?;
            return Ok(None);
        };
        answers.insert(question.id.clone(), line.trim().into());
    }
    Ok(Some(answers))
}

impl Printer<'_> {
    fn add(&mut self, event: &FlowEvent) -> anyhow::Result<()> {
        if let Some(line) = self.progress.add(event) {
            writeln!(self.err, "{line}")?;
        }
        if !self.json {
            return Ok(());
        }
        if matches!(event.body, EventBody::RunInterrupted(_)) {
            self.stopped = Some(event.to_value());
            return Ok(());
        }
        self.write_event(&event.to_value())
    }

    fn write_event(&mut self, event: &Value) -> anyhow::Result<()> {
        writeln!(self.out, "{event}")?;
        Ok(self.out.flush()?)
    }

    /// Writes the last event of a run that stopped, with the text of the node that it stopped after.
    fn write_stopped(&mut self, after: Option<(&str, Value)>) -> anyhow::Result<()> {
        let Some(mut event) = self.stopped.take() else {
            return Ok(());
        };
        if let Some((node, result)) = after {
            event["payload"]["node"] = node.into();
            event["payload"]["result"] = result;
        }
        self.write_event(&event)
    }

    fn finish(&mut self, result: Option<&Value>) -> anyhow::Result<RunExit> {
        writeln!(self.err, "completed with {}", self.progress.total())?;
        if !self.json {
            self.write_result(result.unwrap_or(&Value::Null))?;
        }
        Ok(RunExit::Success)
    }

    fn stop(
        &mut self,
        flow: &CompiledFlow,
        data: &RunData,
        node: NodeIndex,
    ) -> anyhow::Result<RunExit> {
        let id = &*flow.nodes[node].id;
        let text = data.output(node).map(|output| output.as_text());
        let result = json!(text);
        writeln!(
            self.err,
            "stopped after {} with {}",
            one_line(id),
            self.progress.total()
        )?;
        if self.json {
            self.write_stopped(Some((id, result)))?;
        } else {
            self.write_result(&result)?;
        }
        Ok(RunExit::Success)
    }

    fn fail(&mut self, error: &FlowError) -> anyhow::Result<RunExit> {
        let node = error.node_id.as_ref();
        let node = node.map(|node| format!(" at node {node}"));
        let text = format!(
            "error {}{}: {}",
            error.code,
            node.unwrap_or_default(),
            error.message
        );
        writeln!(self.err, "{}", one_line(&text))?;
        Ok(RunExit::Failed)
    }

    /// Writes a text as it is, and other values as JSON. Null is an empty result.
    fn write_result(&mut self, result: &Value) -> anyhow::Result<()> {
        match result {
            Value::Null => {}
            Value::String(text) => writeln!(self.out, "{}", plain(text))?,
            other => writeln!(self.out, "{other:#}")?,
        }
        Ok(self.out.flush()?)
    }
}

//! Checks that a viewer receives every event of its run once and in order, over all of its
//! connections, and nothing after the end.

use std::collections::BTreeMap;

use super::finding::{Finding, Numbered};
use super::line::{EventId, Operation};

/// State of a viewer.
#[derive(Debug, Default)]
struct Viewer {
    run: String,
    open: bool,
    last: Option<EventId>,
    over: bool,
    gapped: bool,
}

impl Viewer {
    /// Reports whether the event may come next. A new attempt sends the state first, so it may
    /// replace events that only viewers of the lost attempt received, or restart at 1 if the stream
    /// was lost with its server.
    fn expects(&self, id: EventId, event: &str) -> bool {
        match self.last {
            None => id.number == 1,
            Some(last) if id.attempt > last.attempt => {
                event == "metadata" && (1..=last.number + 1).contains(&id.number)
            }
            Some(last) => id.attempt == last.attempt && id.number == last.number + 1,
        }
    }
}

pub(super) fn analyze(history: &[Numbered], findings: &mut Vec<Finding>) {
    let mut viewers: BTreeMap<&str, Viewer> = BTreeMap::new();
    for (line, operation) in history {
        let mut say = |what: String| findings.push(Finding::at(*line, what));
        match operation {
            Operation::Opened {
                viewer: name,
                run,
                after,
            } => {
                let viewer = viewers.entry(name).or_insert_with(|| Viewer {
                    run: run.clone(),
                    ..Viewer::default()
                });
                if viewer.run != *run {
                    say(format!(
                        "viewer {name} follows {} and then {run}",
                        viewer.run
                    ));
                }
                if !viewer.gapped && viewer.last != *after {
                    say(format!(
                        "viewer {name} resumes after {}, but had received {}",
                        shown(*after),
                        shown(viewer.last)
                    ));
                }
                viewer.open = true;
            }
            Operation::Event {
                viewer: name,
                id,
                event,
                ..
            } => match viewers.get_mut(name.as_str()) {
                Some(viewer) if viewer.open => {
                    if viewer.over {
                        say(format!("viewer {name} gets {event} {id} after the end"));
                    } else if !viewer.gapped && !viewer.expects(*id, event) {
                        let is_repeated = viewer.last.is_some_and(|last| id.number <= last.number);
                        let violation = if is_repeated { "repetition" } else { "gap" };
                        say(format!(
                            "{violation} in run {}: viewer {name} gets {id} after {}",
                            viewer.run,
                            shown(viewer.last)
                        ));
                    }
                    viewer.last = Some(*id);
                }
                _ => say(format!("viewer {name} gets {id} and is not connected")),
            },
            Operation::Ended { viewer: name } => match viewers.get_mut(name.as_str()) {
                Some(viewer) if viewer.over => say(format!(
                    "viewer {name} receives the end of {} twice",
                    viewer.run
                )),
                Some(viewer) => viewer.over = true,
                None => say(format!("viewer {name} receives an end but follows no run")),
            },
            // The viewer was notified of the gap.
            Operation::Gap { viewer: name } => {
                if let Some(viewer) = viewers.get_mut(name.as_str()) {
                    viewer.gapped = true;
                }
            }
            Operation::Broke { viewer: name } => {
                if let Some(viewer) = viewers.get_mut(name.as_str()) {
                    viewer.open = false;
                }
            }
            _ => {}
        }
    }
    let end = history.last().map_or(0, |(line, _)| *line);
    for (name, viewer) in viewers
        .into_iter()
        .filter(|(_, viewer)| !viewer.over && !viewer.gapped)
    {
        findings.push(Finding::at(
            end,
            format!("viewer {name} of run {} never receives its end", viewer.run),
        ));
    }
}

fn shown(id: Option<EventId>) -> String {
    id.map_or_else(|| "the beginning".to_owned(), |id| id.to_string())
}

//! The built-in kinds.

use std::sync::OnceLock;

use crate::compiled::LoaderKind;
use crate::schema::{DataType, Port};

/// Executor of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KindDriver {
    /// A turn of an agent: kinds `agent.*`.
    Agent,
    /// A loader: kinds `loader.*`.
    Loader(LoaderKind),
    /// `input.prompt`.
    Prompt,
    /// `control.plan-loop`.
    PlanLoop,
    /// `control.loop`.
    Loop,
    /// `control.condition` and `router.*`.
    Router,
    /// `control.parallel`.
    Parallel,
    /// `control.join`.
    Join,
    /// `control.human`.
    Human,
    /// `control.subflow`.
    Subflow,
    /// `control.finish` and `control.output`.
    Finish,
}

impl KindDriver {
    /// Returns what executes a kind; `None` if nothing does.
    pub fn of(kind: &str) -> Option<Self> {
        Some(match kind {
            "loader.work-dir" => Self::Loader(LoaderKind::WorkDir),
            "loader.local-dir" => Self::Loader(LoaderKind::LocalDir),
            "loader.http-auth" => Self::Loader(LoaderKind::HttpAuth),
            "loader.input" => Self::Loader(LoaderKind::Input),
            "input.prompt" => Self::Prompt,
            "control.plan-loop" => Self::PlanLoop,
            "control.loop" => Self::Loop,
            "control.condition" => Self::Router,
            "control.parallel" => Self::Parallel,
            "control.join" => Self::Join,
            "control.human" => Self::Human,
            "control.subflow" => Self::Subflow,
            "control.finish" | "control.output" => Self::Finish,
            _ => match kind.split_once('.') {
                Some(("agent", variant)) if !variant.is_empty() => Self::Agent,
                Some(("router", variant)) if !variant.is_empty() => Self::Router,
                Some(("loader", variant)) if !variant.is_empty() => {
                    Self::Loader(LoaderKind::Custom)
                }
                _ => return None,
            },
        })
    }

    /// Returns `true` if the node itself chooses the handle that it leaves by.
    pub fn is_routing_handle(self, handle: &str) -> bool {
        match self {
            Self::PlanLoop => ["plan", "execute", "evaluate", "done"].contains(&handle),
            Self::Loop => ["loop", "done"].contains(&handle),
            Self::Router => true,
            // The options; the answer is a value.
            Self::Human => handle != "response" && handle != "out",
            _ => false,
        }
    }

    /// Returns `true` if the kind limits the rounds of a cycle.
    pub fn limits_cycles(self) -> bool {
        matches!(self, Self::PlanLoop | Self::Loop)
    }

    /// Returns the default inputs.
    pub(super) fn inputs(self) -> &'static [Port] {
        let [inputs, _] = self.ports();
        inputs
    }

    /// Returns the default outputs, without the options of a human node.
    pub(super) fn outputs(self) -> &'static [Port] {
        let [_, outputs] = self.ports();
        outputs
    }

    fn ports(self) -> &'static [Vec<Port>; 2] {
        use DataType::{Any, Documents, Flow, Plan, Prompt, Score, String};
        macro_rules! sides {
            ([$($input:expr),*], [$($output:expr),*]) => {{
                static SIDES: OnceLock<[Vec<Port>; 2]> = OnceLock::new();
                SIDES.get_or_init(|| {
                    [vec![$(input($input)),*], vec![$(output($output)),*]]
                })
            }};
        }
        match self {
            Self::Agent => sides!(
                [("in", Flow), ("prompt", Prompt), ("data", Any)],
                [
                    ("out", Flow),
                    ("result", String),
                    ("plan", Plan),
                    ("score", Score)
                ]
            ),
            Self::Loader(LoaderKind::Input) => {
                sides!([("in", Flow)], [("out", Flow), ("data", Any)])
            }
            Self::Loader(_) => sides!([("in", Flow)], [("out", Flow), ("data", Documents)]),
            Self::Prompt => sides!([("in", Flow)], [("out", Flow), ("prompt", Prompt)]),
            Self::PlanLoop => sides!(
                [("in", Flow), ("prompt", Prompt), ("score", Score)],
                [
                    ("plan", Flow),
                    ("execute", Flow),
                    ("evaluate", Flow),
                    ("done", Flow),
                    ("score", Score)
                ]
            ),
            Self::Loop => sides!([("in", Flow)], [("loop", Flow), ("done", Flow)]),
            Self::Router => sides!([("in", Flow)], []),
            Self::Parallel | Self::Join => sides!([("in", Flow)], [("out", Flow)]),
            Self::Human => sides!([("in", Flow)], [("out", Flow), ("response", Any)]),
            Self::Subflow => sides!(
                [("in", Flow), ("prompt", Prompt), ("data", Any)],
                [("out", Flow), ("result", Any)]
            ),
            Self::Finish => sides!([("in", Flow), ("result", Any)], []),
        }
    }
}

/// Creates an input; only the one for control is required.
fn input((id, data_type): (&str, DataType)) -> Port {
    Port {
        required: Some(data_type == DataType::Flow),
        ..output((id, data_type))
    }
}

pub(super) fn output((id, data_type): (&str, DataType)) -> Port {
    Port {
        port_id: id.to_owned(),
        data_type,
        label: None,
        required: None,
        description: None,
        default_value: None,
        extra: serde_json::Map::new(),
    }
}

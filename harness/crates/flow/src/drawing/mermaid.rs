//! A drawing as text for Mermaid.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::graph::{Drawing, DrawnEdge, DrawnNode};

/// Maximum length of a label, in characters.
const MAX_LABEL_CHARS: usize = 80;

impl Drawing {
    /// Returns the drawing as a Mermaid flowchart. Conditional edges have dotted arrows, edges that
    /// carry a value thick ones. Nodes are numbered, so that any id is safe.
    pub fn mermaid(&self) -> String {
        let numbers: HashMap<&str, usize> = self
            .nodes
            .iter()
            .enumerate()
            .map(|(number, node)| (node.id.as_str(), number))
            .collect();
        let mut text = "flowchart TD\n".to_owned();
        for (number, node) in self.nodes.iter().enumerate() {
            let (open, close) = if node.data.is_some() {
                ("[", "]")
            } else {
                ("([", "])")
            };
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "    n{number}{open}\"{}\"{close}",
                escaped(&name(node))
            );
        }
        for edge in &self.edges {
            let ends = (
                numbers.get(edge.source.as_str()),
                numbers.get(edge.target.as_str()),
            );
            let (Some(source), Some(target)) = ends else {
                continue;
            };
            let arrow = arrow(edge);
            let _ = match &edge.label {
                Some(label) => writeln!(
                    text,
                    "    n{source} {arrow}|\"{}\"| n{target}",
                    escaped(label)
                ),
                None => writeln!(text, "    n{source} {arrow} n{target}"),
            };
        }
        text
    }
}

fn arrow(edge: &DrawnEdge) -> &'static str {
    match (edge.conditional, edge.carries_data) {
        (true, _) => "-.->",
        (false, true) => "==>",
        (false, false) => "-->",
    }
}

fn name(node: &DrawnNode) -> String {
    match &node.data {
        Some(data) if data.name != node.id => format!("{} ({})", data.name, node.id),
        _ => node.id.clone(),
    }
}

/// Writes special characters as entities, and shortens the text.
fn escaped(text: &str) -> String {
    let mut label = String::new();
    for c in text.chars().take(MAX_LABEL_CHARS) {
        match c {
            '"' | '#' | '<' | '>' | '&' | '`' | '|' | '\\' => {
                let _ = write!(label, "#{};", u32::from(c));
            }
            c if c.is_control() => label.push(' '),
            c => label.push(c),
        }
    }
    if text.chars().count() > MAX_LABEL_CHARS {
        label.push('…');
    }
    label
}

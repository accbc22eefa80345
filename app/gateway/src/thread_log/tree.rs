//! Agents of the newest run of a thread, with their statuses.

use serde::Serialize;

use super::event::{Namespace, StatusChange};

/// An agent and the agents inside of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct TreeNode {
    namespace: Namespace,
    status: &'static str,
    graph_name: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    children: Vec<TreeNode>,
}

impl TreeNode {
    /// Changes the status of the agent at `namespace`. A run that starts has no nested agents.
    pub(super) fn apply(tree: &mut Option<Self>, namespace: &Namespace, change: &StatusChange) {
        let node = Self {
            namespace: namespace.clone(),
            status: change.status,
            graph_name: change.graph.clone(),
            children: Vec::new(),
        };
        match tree {
            Some(root) if !namespace.is_empty() => root.insert(node),
            Some(root) if change.status != "running" => root.status = change.status,
            _ => *tree = Some(node),
        }
    }

    fn insert(&mut self, node: Self) {
        let known = self.children.iter_mut().find(|child| {
            let depth = child.namespace.len();
            node.namespace.get(..depth) == Some(&child.namespace)
        });
        match known {
            Some(child) if child.namespace == node.namespace => child.status = node.status,
            Some(child) => child.insert(node),
            None => self.children.push(node),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nested_agents_are_children_of_their_callers() {
        let mut tree = None;
        let mut apply = |namespace: &[&str], status| {
            let namespace = namespace.iter().map(ToString::to_string).collect();
            let graph = "g".to_owned();
            TreeNode::apply(&mut tree, &namespace, &StatusChange { status, graph });
        };
        apply(&[], "running");
        apply(&["tools:1"], "started");
        apply(&["tools:1", "tools:2"], "started");
        apply(&["tools:3"], "started");
        apply(&["tools:1", "tools:2"], "completed");
        apply(&[], "completed");
        let leaf = |namespace: &[&str], status: &str| json!({ "namespace": namespace, "status": status, "graph_name": "g" });
        let mut first = leaf(&["tools:1"], "started");
        first["children"] = json!([leaf(&["tools:1", "tools:2"], "completed")]);
        let mut root = leaf(&[], "completed");
        root["children"] = json!([first, leaf(&["tools:3"], "started")]);
        assert_eq!(json!(tree), root);
        let mut again = tree;
        let change = StatusChange {
            status: "running",
            graph: "g".to_owned(),
        };
        TreeNode::apply(&mut again, &Vec::new(), &change);
        assert_eq!(json!(again), leaf(&[], "running"));
    }
}

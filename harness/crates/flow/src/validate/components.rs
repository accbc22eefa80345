//! Cycles and reachability in a directed graph.

/// Returns the strongly connected component of each node. Two nodes lie on a common cycle exactly
/// if they have the same one.
pub(crate) fn components(targets: &[Vec<usize>]) -> Vec<usize> {
    const NONE: usize = usize::MAX;
    let mut sources = vec![Vec::new(); targets.len()];
    for (node, targets) in targets.iter().enumerate() {
        for &target in targets {
            sources[target].push(node);
        }
    }
    let mut component = vec![NONE; targets.len()];
    for (count, &root) in finishing_order(targets).iter().rev().enumerate() {
        if component[root] != NONE {
            continue;
        }
        let mut stack = vec![root];
        component[root] = count;
        while let Some(node) = stack.pop() {
            for &source in &sources[node] {
                if component[source] == NONE {
                    component[source] = count;
                    stack.push(source);
                }
            }
        }
    }
    component
}

/// Returns the nodes in the order in which a depth-first search leaves them.
fn finishing_order(targets: &[Vec<usize>]) -> Vec<usize> {
    let mut order = Vec::with_capacity(targets.len());
    let mut seen = vec![false; targets.len()];
    for root in 0..targets.len() {
        if std::mem::replace(&mut seen[root], true) {
            continue;
        }
        let mut stack = vec![(root, 0)];
        while let Some((node, next)) = stack.pop() {
            match targets[node].get(next) {
                Some(&target) => {
                    stack.push((node, next + 1));
                    if !std::mem::replace(&mut seen[target], true) {
                        stack.push((target, 0));
                    }
                }
                None => order.push(node),
            }
        }
    }
    order
}

/// Returns which nodes a search from `start` finds. It does not go on behind nodes that `stops`
/// accepts, but for `start`.
pub(crate) fn reachable(
    targets: &[Vec<usize>],
    start: usize,
    stops: impl Fn(usize) -> bool,
) -> Vec<bool> {
    let mut found = vec![false; targets.len()];
    let mut stack = vec![start];
    while let Some(node) = stack.pop() {
        for &target in &targets[node] {
            if !std::mem::replace(&mut found[target], true) && !stops(target) {
                stack.push(target);
            }
        }
    }
    found
}
